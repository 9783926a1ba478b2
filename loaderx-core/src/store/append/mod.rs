//! Append: any number of records, visible as a whole or not at all.
//!
//! Everything that can be refused is refused before the first byte is written. Then the records are encoded in portions
//! of bounded size, each portion's bytes and table entries are written behind what is committed, and at the end one
//! header makes all of them part of the store. `docs/format.md` argues why a crash at any point is harmless.

mod encode;
mod place;
mod records;

use std::sync::PoisonError;

use super::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::Kind;
use encode::{Encoder, Part};
use place::Placing;
use records::Records;

impl Store {
    /// Appends records that lie one after the other: record i is `bytes[offsets[i]..offsets[i + 1]]`, the last
    /// runs to the end. Returns the index of the first.
    ///
    /// The records become visible all at once, and durable with the next [`Store::sync`].
    ///
    /// # Errors
    ///
    /// When the offsets do not ascend within `bytes`, or a record's length or the number of records is outside
    /// the format's limits: nothing is written then. When a write fails: nothing is committed then, the
    /// store is as it was, and a later append may succeed.
    pub fn append(&self, bytes: &[u8], offsets: &[u64]) -> Result<u64> {
        let mut records = Vec::with_capacity(offsets.len());
        for (i, &start) in offsets.iter().enumerate() {
            let end = offsets.get(i + 1).copied().unwrap_or(bytes.len() as u64);
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let record = range.and_then(|(start, end)| bytes.get(start..end)).ok_or_else(|| {
                Error::invalid(format!("record {i} would be bytes {start}..{end} of {} bytes", bytes.len()))
                    .with_hint("give the start of each record, ascending, within the bytes")
            })?;
            records.push(record);
        }
        // Each record ends where the next one starts, the last at the end.
        let first = offsets.first().and_then(|&first| usize::try_from(first).ok());
        let packed = first.and_then(|first| bytes.get(first..));
        self.append_records(Records { slices: &records, packed })
    }

    /// Appends records of `record_len` bytes each that lie one after the other. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// When `bytes` is not a whole number of records; otherwise as [`Store::append`].
    pub fn append_fixed(&self, bytes: &[u8], record_len: usize) -> Result<u64> {
        if record_len == 0 || !bytes.len().is_multiple_of(record_len) {
            return Err(Error::invalid(format!(
                "{} bytes are not a whole number of {record_len}-byte records",
                bytes.len()
            )));
        }
        let records: Vec<&[u8]> = bytes.chunks_exact(record_len).collect();
        self.append_records(Records { slices: &records, packed: Some(bytes) })
    }

    /// Appends each slice as a record. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// As [`Store::append`].
    pub fn append_slices<'a>(&self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<u64> {
        let records: Vec<&[u8]> = records.into_iter().collect();
        self.append_records(Records::scattered(&records))
    }

    fn append_records(&self, records: Records<'_, '_>) -> Result<u64> {
        self.check_usable()?;
        let writer = self.writer()?;
        self.check_lengths(records.slices)?;
        let encoder = Encoder::new(self.codec, self.dictionary.as_deref());
        let (mut portion, mut rest) = records.portion();
        // Outside the lock, so that appends of several threads compress at the same time.
        let mut encoded = encode(encoder, portion)?;

        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let first = u64::from(writer.header.length);
        self.check_count(first, records.slices.len())?;
        if records.slices.is_empty() {
            return Ok(first);
        }
        let mut placing = Placing::new(&mut writer)?;
        let placed = loop {
            let placed = match encoded.take() {
                Some(parts) => placing.place_encoded(&parts),
                None => placing.place_raw(portion),
            };
            if placed.is_err() || rest.slices.is_empty() {
                break placed;
            }
            (portion, rest) = rest.portion();
            encoded = match encode(encoder, portion) {
                Ok(encoded) => encoded,
                Err(error) => break Err(error),
            };
        };
        match placed {
            Ok(()) => placing.commit().map(|()| first),
            Err(error) => {
                placing.give_up();
                Err(error)
            }
        }
    }

    fn check_lengths(&self, records: &[&[u8]]) -> Result<()> {
        let version = self.version;
        let limits = version.min_record_bytes()..=version.max_record_bytes();
        if let Some(schema) = &self.schema {
            let item = schema.item_bytes();
            let fits = |record: &[u8]| match schema.kind() {
                Kind::Dense => record.len() == item,
                Kind::Ragged => item == 0 || record.len().is_multiple_of(item),
            };
            if let Some((i, record)) = records.iter().enumerate().find(|(_, record)| !fits(record)) {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!("record {i} of this append has {} bytes; the store holds {schema}", record.len()),
                )
                .at_path(&self.path));
            }
        }
        let Some((i, record)) =
            records.iter().enumerate().find(|(_, record)| !limits.contains(&(record.len() as u64)))
        else {
            return Ok(());
        };
        let error = Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "record {i} of this append has {} bytes; format version {} takes {} to {}",
                record.len(),
                version.number(),
                limits.start(),
                limits.end()
            ),
        )
        .at_path(&self.path);
        Err(with_version_hint(error, version))
    }

    fn check_count(&self, first: u64, count: usize) -> Result<()> {
        let limit = self.version.max_records();
        if first + count as u64 <= limit {
            return Ok(());
        }
        let error = Error::new(
            ErrorKind::LimitExceeded,
            format!("{count} records after {first} pass the format's limit of {limit}"),
        )
        .at_path(&self.path);
        Err(with_version_hint(error, self.version))
    }
}

/// `None` if records are stored as they are.
fn encode<'a>(encoder: Option<Encoder<'_>>, portion: Records<'_, 'a>) -> Result<Option<Vec<Part<'a>>>> {
    encoder.map(|encoder| encoder.encode(portion.slices)).transpose()
}

fn with_version_hint(error: Error, version: FormatVersion) -> Error {
    match version {
        FormatVersion::V3 => error
            .with_hint("create the store with CreateOptions::format(FormatVersion::V4), which takes more"),
        FormatVersion::V4 => error,
    }
}
