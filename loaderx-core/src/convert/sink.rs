use std::path::{Path, PathBuf};

use super::blocks::{BLOCK_BYTES, BLOCK_RECORDS, each_block};
use super::choose::choose_codec;
use super::options::{ImportOptions, ImportedStream};
use super::staging::ASIDE;
use crate::codec::{Codec, Training, train_dictionary};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::{Kind, Schema};
use crate::store::{CreateOptions, Store};

/// What a codec is chosen, or a dictionary trained, on: at most so many bytes of the first records.
const SAMPLE_BYTES: usize = 16 << 20;

/// Writes one stream: blocks the records, picks codec and format version, and moves to version 4 on the way when a
/// record turns up that version 3 cannot hold.
pub(super) struct Sink {
    name: String,
    path: PathBuf,
    /// Records of a stream without one are plain bytes.
    schema: Option<Schema>,
    format: FormatVersion,
    /// The caller insists on the format version.
    fixed_format: bool,
    codec: CodecChoice,
    dictionary: Option<Vec<u8>>,
    /// Not there while records are collected as a sample.
    store: Option<Store>,
    block: Vec<u8>,
    /// Start of each record within the block.
    starts: Vec<u64>,
    records: u64,
    bytes: u64,
    notes: Vec<String>,
}

/// How records will be stored, or how that is found out.
#[derive(Clone, Copy)]
enum CodecChoice {
    Fixed(Codec),
    /// With a dictionary that is yet to be trained.
    Train(Codec),
    BySample,
}

impl Sink {
    /// Makes the store in `path`; `records` is how many there will be, where that is known.
    pub(super) fn create(
        path: &Path,
        name: &str,
        schema: Option<Schema>,
        records: Option<u64>,
        options: &ImportOptions,
    ) -> Result<Self> {
        let needs_v4 = first_reason(schema.as_ref(), records);
        let format = match (options.format, &needs_v4) {
            (Some(format), _) => format,
            (None, Some(_)) => FormatVersion::V4,
            (None, None) => FormatVersion::V3,
        };
        if let Some(reason) = &needs_v4
            && format == FormatVersion::V3
        {
            return Err(too_much_for_v3(name, reason));
        }
        if let Some(schema) = schema.as_ref().filter(|schema| schema.kind() == Kind::Dense)
            && schema.item_bytes() as u64 > format.max_record_bytes()
        {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a record of {schema} has {} bytes, the most possible is {}",
                    schema.item_bytes(),
                    format.max_record_bytes()
                ),
            ));
        }
        let codec = match options.codec {
            _ if options.codec_by_sample => CodecChoice::BySample,
            Some(codec @ Codec::ZstdDict { .. }) => CodecChoice::Train(codec),
            Some(codec) => CodecChoice::Fixed(codec),
            None => CodecChoice::Fixed(Codec::Raw),
        };
        let mut sink = Self {
            name: name.to_owned(),
            path: path.to_path_buf(),
            schema,
            format,
            fixed_format: options.format.is_some(),
            codec,
            dictionary: None,
            store: None,
            block: Vec::new(),
            starts: Vec::new(),
            records: 0,
            bytes: 0,
            notes: Vec::new(),
        };
        if let CodecChoice::Fixed(codec) = codec {
            sink.store = Some(sink.create_store(codec)?);
        }
        if let Some(reason) = needs_v4
            && !sink.fixed_format
        {
            sink.note_v4(&reason);
        }
        Ok(sink)
    }

    /// Adds one record, given as its little-endian bytes.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<()> {
        self.check(record)?;
        let most = if self.store.is_some() { BLOCK_BYTES } else { SAMPLE_BYTES };
        if self.block.len() + record.len() > most || self.starts.len() == BLOCK_RECORDS {
            self.flush()?;
        }
        self.starts.push(self.block.len() as u64);
        self.block.extend_from_slice(record);
        Ok(())
    }

    /// Adds dense records that lie one after the other; for records of no bytes, use [`Sink::push`].
    pub(super) fn push_all(&mut self, records: &[u8]) -> Result<()> {
        let dense = self.schema.as_ref().filter(|schema| schema.kind() == Kind::Dense);
        let size = dense.map_or(0, Schema::item_bytes);
        if size == 0 || !records.len().is_multiple_of(size) {
            return Err(Error::invalid(format!(
                "{} bytes are not a whole number of records in stream {:?}",
                records.len(),
                self.name
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

    /// Adds a sentence about a choice that the importer made.
    #[cfg(any(feature = "arrow", feature = "image"))]
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Writes what is left and makes the store durable.
    pub(super) fn finish(mut self) -> Result<ImportedStream> {
        self.flush()?;
        let store = self.take_store()?;
        store.sync()?;
        Ok(ImportedStream {
            name: self.name,
            codec: store.codec(),
            format: self.format,
            records: self.records,
            bytes: self.bytes,
            notes: self.notes,
            schema: self.schema,
        })
    }

    fn create_store(&self, codec: Codec) -> Result<Store> {
        let mut options = CreateOptions::new().codec(codec).format(self.format);
        if let Some(schema) = &self.schema {
            options = options.schema(schema.clone());
        }
        if let Some(dictionary) = &self.dictionary {
            options = options.dictionary(dictionary.clone());
        }
        options.create(&self.path)
    }

    /// The store, made now by the sample that has been collected if it is not there yet.
    fn take_store(&mut self) -> Result<Store> {
        if let Some(store) = self.store.take() {
            return Ok(store);
        }
        let sample: Vec<&[u8]> = self.waiting().collect();
        let codec = match self.codec {
            CodecChoice::Fixed(codec) => codec,
            CodecChoice::Train(codec) => match train_dictionary(&sample, None)? {
                Training::Trained(dictionary) => {
                    self.dictionary = Some(dictionary);
                    codec
                }
                Training::Unsuitable(reason) => {
                    self.notes.push(format!("stored with plain zstd: {reason}"));
                    codec.plain()
                }
            },
            CodecChoice::BySample => {
                let chosen = choose_codec(&sample)?;
                self.notes.push(chosen.reason);
                self.dictionary = chosen.dictionary;
                chosen.codec
            }
        };
        self.create_store(codec)
    }

    /// The records that wait in the block.
    fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.block.len() as u64]);
        self.starts.iter().zip(ends).map(|(&start, end)| {
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            range.and_then(|(start, end)| self.block.get(start..end)).unwrap_or_default()
        })
    }

    fn check(&self, record: &[u8]) -> Result<()> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let place = |error: Error| {
            let message = format!("{} in stream {:?}", error.message(), self.name);
            Error::new(ErrorKind::SchemaMismatch, message).for_record(self.records())
        };
        schema.check_record_bytes(record.len() as u64).map_err(place)?;
        if schema.dtype() == DType::Bool
            && let Some(value) = record.iter().find(|&&value| value > 1)
        {
            return Err(place(Error::invalid(format!(
                "a truth value is {value}, only 0 and 1 are possible,"
            ))));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.starts.is_empty() {
            return Ok(());
        }
        if self.format == FormatVersion::V3
            && let Some(reason) = self.block_reason()
        {
            if self.fixed_format {
                return Err(too_much_for_v3(&self.name, &reason));
            }
            self.format = FormatVersion::V4;
            self.note_v4(&reason);
            if let Some(store) = self.store.take() {
                self.store = Some(self.move_to_v4(store)?);
            }
        }
        let store = self.take_store()?;
        store.append(&self.block, &self.starts)?;
        self.store = Some(store);
        self.records += self.starts.len() as u64;
        self.bytes += self.block.len() as u64;
        self.block.clear();
        self.starts.clear();
        Ok(())
    }

    /// Why version 3 cannot hold the waiting records.
    fn block_reason(&self) -> Option<String> {
        let limits = FormatVersion::V3;
        if self.records() > limits.max_records() {
            return Some(format!("it has more than {} records", limits.max_records()));
        }
        self.waiting().zip(self.records..).find_map(|(record, index)| {
            let length = record.len() as u64;
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

    /// Copies what is written so far into a version 4 store, in which it goes on.
    fn move_to_v4(&self, old: Store) -> Result<Store> {
        let codec = old.codec();
        // Its files are about to be renamed, which some platforms refuse while they are open.
        drop(old);
        let aside = self.path.with_file_name(ASIDE);
        std::fs::rename(&self.path, &aside)
            .map_err(|error| Error::io("move the unfinished store aside", &self.path, error))?;
        let source = Store::open(&aside)?;
        let store = self.create_store(codec)?;
        copy_records(&source, &store)?;
        drop(source);
        std::fs::remove_dir_all(&aside)
            .map_err(|error| Error::io("remove the unfinished store of version 3", &aside, error))?;
        Ok(store)
    }
}

fn too_much_for_v3(name: &str, reason: &str) -> Error {
    Error::new(ErrorKind::LimitExceeded, format!("format version 3 cannot hold stream {name:?}: {reason}"))
        .with_hint("use format version 4")
}

/// Appends every record of `source` to `target` in blocks.
fn copy_records(source: &Store, target: &Store) -> Result<()> {
    each_block(source, |_, bytes, offsets| {
        let starts: Vec<u64> = offsets.iter().rev().skip(1).rev().map(|&offset| offset as u64).collect();
        target.append(bytes, &starts).map(drop)
    })
}

/// Why version 3 cannot hold such a stream, as far as its shape and number of records tell.
fn first_reason(schema: Option<&Schema>, records: Option<u64>) -> Option<String> {
    let limits = FormatVersion::V3;
    if let Some(records) = records
        && records > limits.max_records()
    {
        return Some(format!("it has {records} records, more than {}", limits.max_records()));
    }
    if let Some(schema) = schema.filter(|schema| schema.kind() == Kind::Dense) {
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
