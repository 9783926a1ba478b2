use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Store;
use super::open::{META, chunk_name};
use crate::codec::{self, Codec};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{CHUNK_BYTES, Compression, HEADER_BYTES, LOCATION_BYTES, Location};

impl Store {
    /// Appends records that lie one after the other: record i is `bytes[offsets[i]..offsets[i + 1]]`, the last
    /// runs to the end. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// When the offsets do not ascend within `bytes`, a record's length or the number of records is outside
    /// the format's limits (nothing is written then), or a write fails (nothing is committed then).
    pub fn append(&self, bytes: &[u8], offsets: &[u64]) -> Result<u64> {
        let mut records = Vec::with_capacity(offsets.len());
        for (i, &start) in offsets.iter().enumerate() {
            let end = offsets.get(i + 1).copied().unwrap_or(bytes.len() as u64);
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let record = range.and_then(|(start, end)| bytes.get(start..end)).ok_or_else(|| {
                Error::invalid(format!("record {i} would be bytes {start}..{end} of {} bytes", bytes.len()))
            })?;
            records.push(record);
        }
        self.append_slices(records)
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
        self.append_slices(bytes.chunks_exact(record_len))
    }

    /// Appends each slice as a record. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// As [`Store::append`].
    pub fn append_slices<'a>(&self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<u64> {
        if !self.writable {
            return Err(Error::new(ErrorKind::ReadOnly, "the store was opened for reading only")
                .at_path(&self.path)
                .with_hint("open it with Store::open_writable"));
        }
        let records: Vec<&[u8]> = records.into_iter().collect();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let first = writer.header.length;
        self.check(&records, first)?;
        let mut header = writer.header;
        let mut entries = Vec::with_capacity(records.len() * LOCATION_BYTES);
        for record in records {
            let (stored, compression) = self.encode(record)?;
            let length = stored.len() as u64;
            if u64::from(header.tail_offset) + length >= CHUNK_BYTES {
                header.tail_chunk += 1;
                header.tail_offset = 0;
                let path = self.path.join(chunk_name(header.tail_chunk));
                let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
                writer
                    .chunks
                    .push(Arc::new(file.map_err(|error| Error::io("create a chunk", &path, error))?));
            }
            let chunk = writer.chunks.last().ok_or_else(|| Error::corrupt("a store without a chunk"))?;
            chunk.write_all_at(&stored, u64::from(header.tail_offset)).map_err(|error| {
                Error::io("write a record", self.path.join(chunk_name(header.tail_chunk)), error)
            })?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "records are at most 2 GiB, as checked above"
            )]
            let location = Location {
                offset: header.tail_offset,
                stored_length: stored.len() as u32,
                decoded_length: record.len() as u32,
                chunk: header.tail_chunk,
                compression,
            };
            entries.extend(location.encode());
            header.tail_offset += location.stored_length;
            header.length += 1;
        }
        let at = HEADER_BYTES as u64 + LOCATION_BYTES as u64 * u64::from(first);
        let failed = |error| Error::io("commit an append", self.path.join(META), error);
        self.table.write_all_at(&entries, at).map_err(failed)?;
        let bytes = header.encode();
        self.table.write_all_at(&bytes[..8], 0).map_err(failed)?;
        self.table.write_all_at(&bytes[8..], 8).map_err(failed)?;
        writer.header = header;
        self.length.store(u64::from(header.length), Ordering::Release);
        Ok(u64::from(first))
    }

    /// Makes everything that was appended durable.
    ///
    /// # Errors
    ///
    /// When the operating system reports a failure.
    pub fn sync(&self) -> Result<()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in &writer.chunks {
            chunk.sync_data().map_err(|error| Error::io("sync a chunk", &self.path, error))?;
        }
        self.table.sync_data().map_err(|error| Error::io("sync the table", self.path.join(META), error))
    }

    fn check(&self, records: &[&[u8]], first: u32) -> Result<()> {
        let version = self.version;
        if u64::from(first) + records.len() as u64 > version.max_records() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "{} records after {first} pass the format's limit of {}",
                    records.len(),
                    version.max_records()
                ),
            )
            .at_path(&self.path));
        }
        for (i, record) in records.iter().enumerate() {
            let length = record.len() as u64;
            if !(version.min_record_bytes()..=version.max_record_bytes()).contains(&length) {
                return Err(Error::new(
                    ErrorKind::LimitExceeded,
                    format!(
                        "record {i} of this append has {length} bytes; format version {} takes {} to {}",
                        version.number(),
                        version.min_record_bytes(),
                        version.max_record_bytes()
                    ),
                )
                .at_path(&self.path));
            }
        }
        Ok(())
    }

    fn encode<'a>(&self, record: &'a [u8]) -> Result<(Cow<'a, [u8]>, Compression)> {
        match self.codec {
            Codec::Raw => Ok((Cow::Borrowed(record), Compression::Raw)),
            Codec::Zstd { level } => {
                let frame = codec::compress(record, level)?;
                if frame.len() < record.len() {
                    Ok((Cow::Owned(frame), Compression::Zstd))
                } else {
                    Ok((Cow::Borrowed(record), Compression::Raw))
                }
            }
            Codec::ZstdDict { .. } => Err(Error::new(ErrorKind::Unsupported, "the store has no dictionary")),
        }
    }
}
