//! One look at a record: is it whole? Shared by verify, repair and the recovery after a power cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::snapshot::Snapshot;
use super::verdict::Verdict;
use super::{Store, names};
use crate::codec;
use crate::error::{Error, ErrorKind};
use crate::format::check::CheckEntry;
use crate::format::{Compression, Location};
use crate::io::{Access, File};

/// In which way a record, or a file beside the records, is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The record's entry of the table is impossible.
    Entry,
    /// The chunk that the entry names does not exist.
    MissingChunk,
    /// The chunk ends before the record does.
    CutShort,
    /// The record lies past the write frontier, where the next append would overwrite it.
    PastFrontier,
    /// The record shares some, but not all, of its bytes with another.
    Overlap,
    /// The stored bytes do not match their checksum.
    Checksum,
    /// The stored bytes do not decode to what the entry says.
    Frame,
    /// The record needs a dictionary that the store does not have.
    Dictionary,
    /// The content's length does not fit the store's schema.
    Schema,
    /// The operating system could not read the bytes.
    Unreadable,
    /// `check.zr` is damaged; the records it spoke for are unchecked.
    Checks,
    /// `journal.zr` is not one that this store can do.
    Journal,
}

impl FaultKind {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::MissingChunk => "missing chunk",
            Self::CutShort => "cut short",
            Self::PastFrontier => "past the frontier",
            Self::Overlap => "overlap",
            Self::Checksum => "checksum",
            Self::Frame => "frame",
            Self::Dictionary => "dictionary",
            Self::Schema => "schema",
            Self::Unreadable => "unreadable",
            Self::Checks => "checks",
            Self::Journal => "journal",
        }
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// In which way.
    pub kind: FaultKind,
    /// The file, within the store's directory.
    pub file: String,
    /// The chunk, where it is about one.
    pub chunk: Option<u32>,
    /// The record's index, where it is about one.
    pub record: Option<u64>,
    /// The byte offset in the file, where there is one.
    pub offset: Option<u64>,
    /// What is wrong, with the numbers.
    pub detail: String,
}

impl Fault {
    pub(super) fn of_file(kind: FaultKind, file: &str, detail: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), chunk: None, record: None, offset: None, detail: detail.into() }
    }

    fn of_record(kind: FaultKind, index: u64, location: &Location, detail: impl Into<String>) -> Self {
        Self {
            kind,
            file: names::chunk(location.chunk),
            chunk: Some(u32::from(location.chunk)),
            record: Some(index),
            offset: Some(u64::from(location.offset)),
            detail: detail.into(),
        }
    }
}

/// The error of a fault that says that the store's dictionary is not the one that a record needs. No damage of the
/// record: nothing may be cut off or put aside for it.
pub(super) fn wrong_dictionary(store: &Store, index: u64, fault: &Fault) -> Error {
    Error::new(ErrorKind::DictionaryMismatch, fault.detail.clone())
        .at_path(store.file(names::DICTIONARY))
        .for_record(index)
        .with_hint("put back the dict.zr that the store was written with")
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.file)?;
        if let Some(record) = self.record {
            write!(f, ", record {record}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// A record without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sound {
    /// A checksum, its own or its frame's, says so.
    Checked,
    /// It is where it should be, and nothing can tell whether its bytes are right.
    Unchecked,
}

/// What [`Scan::look`] knows of a record after looking at it.
pub(super) struct Seen {
    pub(super) location: Location,
    pub(super) sound: Sound,
    /// The CRC-32 of its stored bytes.
    pub(super) crc: u32,
}

/// A chunk file and its length.
type OpenChunk = (Arc<dyn File>, u64);

/// Looks at records one after the other; keeps chunks open and buffers warm.
pub(super) struct Scan<'s> {
    store: &'s Store,
    snapshot: Arc<Snapshot>,
    chunks: BTreeMap<u16, Option<OpenChunk>>,
    stored: Vec<u8>,
    content: Vec<u8>,
}

impl<'s> Scan<'s> {
    pub(super) fn new(store: &'s Store, snapshot: Arc<Snapshot>) -> Self {
        Self { store, snapshot, chunks: BTreeMap::new(), stored: Vec::new(), content: Vec::new() }
    }

    /// The length of a chunk file; `None` if there is none.
    pub(super) fn chunk_size(&mut self, chunk: u16) -> Result<Option<u64>, std::io::Error> {
        Ok(self.chunk(chunk)?.map(|(_, size)| size))
    }

    fn chunk(&mut self, chunk: u16) -> Result<Option<OpenChunk>, std::io::Error> {
        if let Some(known) = self.chunks.get(&chunk) {
            return Ok(known.clone());
        }
        let opened = match self.store.directory.open(&names::chunk(chunk), Access::Read) {
            Ok(file) => {
                let size = file.size()?;
                Some((file, size))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        self.chunks.insert(chunk, opened.clone());
        Ok(opened)
    }

    /// The entry and the check of a record.
    pub(super) fn entry(&self, index: u64) -> Result<(Location, CheckEntry), Box<Fault>> {
        self.store.entry_of(&self.snapshot, index).map_err(|error| {
            let kind =
                if error.kind() == ErrorKind::Corrupt { FaultKind::Entry } else { FaultKind::Unreadable };
            let mut fault = Fault::of_file(kind, names::META, error.message());
            fault.record = Some(index);
            fault.offset = Some(crate::format::table_offset(index));
            Box::new(fault)
        })
    }

    /// Looks at a record, its stored bytes and what they decode to.
    pub(super) fn look(&mut self, index: u64) -> Result<Seen, Box<Fault>> {
        let (location, check) = self.entry(index)?;
        let fault = |kind, detail: String| Box::new(Fault::of_record(kind, index, &location, detail));
        let unreadable = |error: std::io::Error| fault(FaultKind::Unreadable, error.to_string());
        let (file, size) = self.chunk(location.chunk).map_err(unreadable)?.ok_or_else(|| {
            fault(FaultKind::MissingChunk, format!("there is no {}", names::chunk(location.chunk)))
        })?;
        if location.end() > size {
            return Err(fault(
                FaultKind::CutShort,
                format!("the record is bytes {}..{} of a file of {size}", location.offset, location.end()),
            ));
        }
        self.stored.resize(location.stored_length as usize, 0);
        file.read_exact_at(&mut self.stored, u64::from(location.offset)).map_err(unreadable)?;
        let crc = crc32fast::hash(&self.stored);
        let mut sound = match self.snapshot.judge(index, &location, check, crc) {
            Verdict::Sound => Sound::Checked,
            Verdict::Unknown => Sound::Unchecked,
            Verdict::Damaged(why) => {
                return Err(fault(FaultKind::Checksum, format!("{why}; their CRC is {crc:08x}")));
            }
        };
        if location.compression != Compression::Raw {
            self.decode(&location).map_err(|error| {
                let kind = match error.kind() {
                    ErrorKind::DictionaryMismatch => FaultKind::Dictionary,
                    // No fault of the record: nothing may be cut off for it.
                    ErrorKind::LimitExceeded => FaultKind::Unreadable,
                    _ => FaultKind::Frame,
                };
                fault(kind, error.message().to_owned())
            })?;
            if has_checksum(&self.stored) {
                sound = Sound::Checked;
            }
        }
        self.check_schema(&location).map_err(|detail| fault(FaultKind::Schema, detail))?;
        Ok(Seen { location, sound, crc })
    }

    fn decode(&mut self, location: &Location) -> Result<(), Error> {
        let dictionary = self.store.dictionary_for(location)?;
        let length = location.decoded_length as usize;
        codec::check_promise(self.stored.len() as u64, location.decoded_length, |at, buffer| {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            let bytes = self.stored.get(start..).and_then(|rest| rest.get(..buffer.len()));
            buffer.copy_from_slice(bytes.ok_or_else(|| Error::corrupt("the frame is cut short"))?);
            Ok(())
        })?;
        self.content.clear();
        self.content.try_reserve_exact(length).map_err(|error| {
            Error::new(ErrorKind::LimitExceeded, format!("no memory for {length} bytes")).caused_by(error)
        })?;
        codec::decompress(&self.stored, dictionary, &mut self.content, length)
    }

    fn check_schema(&self, location: &Location) -> Result<(), String> {
        let Some(schema) = &self.store.schema else { return Ok(()) };
        let (length, item) = (location.decoded_length as usize, schema.item_bytes());
        let fits = match schema.kind() {
            crate::schema::Kind::Dense => length == item,
            crate::schema::Kind::Ragged => item == 0 || length.is_multiple_of(item),
        };
        if fits { Ok(()) } else { Err(format!("the record has {length} bytes, the schema is {schema}")) }
    }

    /// The stored bytes of the record looked at last, as far as they could be read.
    pub(super) fn last_stored(&self) -> &[u8] {
        &self.stored
    }

    /// Forgets the stored bytes of the record before.
    pub(super) fn forget_stored(&mut self) {
        self.stored.clear();
    }
}

/// Whether a zstd frame carries a checksum of its content.
fn has_checksum(frame: &[u8]) -> bool {
    // Byte 4, the frame header descriptor; bit 2 is the checksum flag.
    frame.get(4).is_some_and(|descriptor| descriptor & 4 != 0)
}
