use std::path::{Path, PathBuf};

use super::options::{ImportOptions, ImportedStream};
use super::staging::ASIDE;
use crate::codec::Codec;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::{Kind, Schema};
use crate::store::{CreateOptions, Store};

/// Records are handed to the store in blocks of about this many bytes.
pub(super) const BLOCK_BYTES: usize = 4 << 20;
const BLOCK_RECORDS: usize = 1 << 16;

/// Writes one stream: blocks the records, picks the format version, and moves to version 4 on the way when a
/// record turns up that version 3 cannot hold.
pub(super) struct Sink {
    name: String,
    path: PathBuf,
    schema: Schema,
    codec: Codec,
    /// The version that the caller insists on.
    wanted: Option<FormatVersion>,
    store: Store,
    block: Vec<u8>,
    /// Start of each record within the block.
    starts: Vec<u64>,
    records: u64,
    bytes: u64,
    notes: Vec<String>,
}

impl Sink {
    /// Makes the store in `path`; `records` is how many there will be, where that is known.
    pub(super) fn create(
        path: &Path,
        name: &str,
        schema: Schema,
        records: Option<u64>,
        options: &ImportOptions,
    ) -> Result<Self> {
        let needs_v4 = first_reason(&schema, records);
        let format = match (options.format, &needs_v4) {
            (Some(format), _) => format,
            (None, Some(_)) => FormatVersion::V4,
            (None, None) => FormatVersion::V3,
        };
        if let Some(reason) = &needs_v4
            && format == FormatVersion::V3
        {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("format version 3 cannot hold stream {name:?}: {reason}"),
            )
            .with_hint("use format version 4"));
        }
        if schema.kind() == Kind::Dense && schema.item_bytes() as u64 > format.max_record_bytes() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a record of {schema} has {} bytes, the most possible is {}",
                    schema.item_bytes(),
                    format.max_record_bytes()
                ),
            ));
        }
        let codec = options.codec.unwrap_or(Codec::Raw);
        let store = CreateOptions::new().codec(codec).schema(schema.clone()).format(format).create(path)?;
        let mut sink = Self {
            name: name.to_owned(),
            path: path.to_path_buf(),
            schema,
            codec,
            wanted: options.format,
            store,
            block: Vec::new(),
            starts: Vec::new(),
            records: 0,
            bytes: 0,
            notes: Vec::new(),
        };
        if format == FormatVersion::V4
            && options.format.is_none()
            && let Some(reason) = needs_v4
        {
            sink.note_v4(&reason);
        }
        Ok(sink)
    }

    /// Adds one record, given as its little-endian bytes.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<()> {
        self.check(record)?;
        if self.block.len() + record.len() > BLOCK_BYTES || self.starts.len() == BLOCK_RECORDS {
            self.flush()?;
        }
        self.starts.push(self.block.len() as u64);
        self.block.extend_from_slice(record);
        Ok(())
    }

    /// Adds dense records that lie one after the other; for records of no bytes, use [`Sink::push`].
    pub(super) fn push_all(&mut self, records: &[u8]) -> Result<()> {
        let size = self.schema.item_bytes();
        if size == 0 || self.schema.kind() != Kind::Dense || !records.len().is_multiple_of(size) {
            return Err(Error::invalid(format!(
                "{} bytes are not a whole number of records of {}",
                records.len(),
                self.schema
            )));
        }
        records.chunks_exact(size).try_for_each(|record| self.push(record))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Records added so far.
    pub(super) fn records(&self) -> u64 {
        self.records + self.starts.len() as u64
    }

    /// Writes what is left and makes the store durable.
    pub(super) fn finish(mut self) -> Result<ImportedStream> {
        self.flush()?;
        self.store.sync()?;
        Ok(ImportedStream {
            name: self.name,
            codec: self.codec,
            format: self.store.format(),
            records: self.records,
            bytes: self.bytes,
            notes: self.notes,
            schema: self.schema,
        })
    }

    fn check(&self, record: &[u8]) -> Result<()> {
        let size = self.schema.item_bytes();
        let fits = match self.schema.kind() {
            Kind::Dense => record.len() == size,
            Kind::Ragged if size == 0 => record.is_empty(),
            Kind::Ragged => record.len().is_multiple_of(size),
        };
        let describe = |what: String| {
            Error::new(ErrorKind::SchemaMismatch, format!("{what} in stream {:?}", self.name))
                .for_record(self.records())
        };
        if !fits {
            return Err(describe(format!("{} bytes are no record of {}", record.len(), self.schema)));
        }
        if self.schema.dtype() == DType::Bool
            && let Some(value) = record.iter().find(|&&value| value > 1)
        {
            return Err(describe(format!("a truth value is {value}, only 0 and 1 are possible,")));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.starts.is_empty() {
            return Ok(());
        }
        if self.store.format() == FormatVersion::V3
            && let Some(reason) = self.block_reason()
        {
            if self.wanted.is_some() {
                return Err(Error::new(
                    ErrorKind::LimitExceeded,
                    format!("format version 3 cannot hold stream {:?}: {reason}", self.name),
                )
                .with_hint("use format version 4"));
            }
            self.move_to_v4()?;
            self.note_v4(&reason);
        }
        self.store.append(&self.block, &self.starts)?;
        self.records += self.starts.len() as u64;
        self.bytes += self.block.len() as u64;
        self.block.clear();
        self.starts.clear();
        Ok(())
    }

    /// Why version 3 cannot hold the waiting records.
    fn block_reason(&self) -> Option<String> {
        let limits = FormatVersion::V3;
        let count = self.records + self.starts.len() as u64;
        if count > limits.max_records() {
            return Some(format!("it has more than {} records", limits.max_records()));
        }
        let ends = self.starts.iter().skip(1).copied().chain([self.block.len() as u64]);
        self.starts.iter().zip(ends).zip(self.records..).find_map(|((&start, end), index)| {
            let length = end - start;
            if length > limits.max_record_bytes() {
                Some(format!("record {index} has {length} bytes, more than {}", limits.max_record_bytes()))
            } else if length < limits.min_record_bytes() {
                Some(format!("record {index} is empty"))
            } else {
                None
            }
        })
    }

    fn note_v4(&mut self, reason: &str) {
        self.notes.push(format!(
            "stored in format version 4, which the Python package 0.9.4 does not read, because {reason}"
        ));
    }

    /// Copies what is written so far into a version 4 store and goes on there.
    fn move_to_v4(&mut self) -> Result<()> {
        let old = self.path.with_file_name(ASIDE);
        std::fs::rename(&self.path, &old)
            .map_err(|error| Error::io("move the unfinished store aside", &self.path, error))?;
        let source = Store::open(&old)?;
        let store = CreateOptions::new()
            .codec(self.codec)
            .schema(self.schema.clone())
            .format(FormatVersion::V4)
            .create(&self.path)?;
        copy_records(&source, &store)?;
        self.store = store;
        drop(source);
        std::fs::remove_dir_all(&old)
            .map_err(|error| Error::io("remove the unfinished store of version 3", &old, error))
    }
}

/// Appends every record of `source` to `target` in blocks.
fn copy_records(source: &Store, target: &Store) -> Result<()> {
    let mut next = 0;
    let mut lengths = Vec::new();
    while next < source.len() {
        let wanted: Vec<u64> = (next..source.len()).take(BLOCK_RECORDS).collect();
        source.lengths(&wanted, &mut lengths)?;
        let mut bytes = 0;
        let fitting = lengths.iter().take_while(|&&length| {
            bytes += length;
            bytes <= BLOCK_BYTES as u64
        });
        let count = fitting.count().max(1);
        let indices = wanted.get(..count).unwrap_or(&wanted);
        let (packed, mut offsets) = source.gather_packed(indices)?;
        offsets.truncate(indices.len());
        target.append(&packed, &offsets)?;
        next += indices.len() as u64;
    }
    Ok(())
}

/// Why version 3 cannot hold such a stream, as far as its shape and number of records tell.
fn first_reason(schema: &Schema, records: Option<u64>) -> Option<String> {
    let limits = FormatVersion::V3;
    if let Some(records) = records
        && records > limits.max_records()
    {
        return Some(format!("it has {records} records, more than {}", limits.max_records()));
    }
    if schema.kind() == Kind::Dense {
        let bytes = schema.item_bytes() as u64;
        if bytes > limits.max_record_bytes() {
            return Some(format!("a record has {bytes} bytes, more than {}", limits.max_record_bytes()));
        }
        if bytes < limits.min_record_bytes() {
            return Some("its records are empty".to_owned());
        }
    }
    None
}
