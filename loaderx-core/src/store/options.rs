//! How stores are made and opened.

use std::path::Path;
use std::sync::Arc;

use super::Store;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::format::FormatVersion;
use crate::io::{Directory, Disk};
use crate::schema::Schema;

/// How stored bytes are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadMode {
    /// Through memory mappings: the fast way. A file that another program truncates while it is mapped ends the
    /// process with a signal (SIGBUS on unix) when the lost part is read.
    #[default]
    Mapped,
    /// With positioned reads, a system call for each record: for file systems where a mapping is not safe,
    /// network shares above all. A file that has become shorter is an error.
    Positioned,
}

/// How a store is made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    pub(super) codec: Codec,
    pub(super) schema: Option<Schema>,
    pub(super) version: FormatVersion,
    pub(super) dictionary: Option<Vec<u8>>,
    pub(super) checks: bool,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CreateOptions {
    /// A version 3 store of plain bytes, stored raw, with checksums.
    #[must_use]
    pub fn new() -> Self {
        Self { codec: Codec::Raw, schema: None, version: FormatVersion::V3, dictionary: None, checks: true }
    }

    /// How appended records are stored.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// What the records mean.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The format version and so the limits.
    #[must_use]
    pub fn format(mut self, version: FormatVersion) -> Self {
        self.version = version;
        self
    }

    /// The zstd dictionary of the store, which [`Codec::ZstdDict`] needs; see
    /// [`train_dictionary`](super::train_dictionary).
    #[must_use]
    pub fn dictionary(mut self, dictionary: impl Into<Vec<u8>>) -> Self {
        self.dictionary = Some(dictionary.into());
        self
    }

    /// Whether a checksum of each record is kept in `check.zr` (8 bytes a record; the default). Without it
    /// damage to raw records cannot be found, and what a power cut has destroyed is noticed only where a file has
    /// become too short.
    #[must_use]
    pub fn checks(mut self, checks: bool) -> Self {
        self.checks = checks;
        self
    }

    /// Makes the store in the directory `path`, which may exist if no store is in it, and opens it for writing.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) when a store, or what is left of one, is there already;
    /// when the codec needs a dictionary and none is given; when the directory cannot be written.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        // Before the directory is made: what is refused leaves nothing behind.
        self.parsed_dictionary()?;
        let path = path.as_ref();
        let disk =
            Disk::create(path).map_err(|error| Error::io("create the store's directory", path, error))?;
        self.create_in(Arc::new(disk))
    }
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(super) writable: bool,
    pub(super) mode: ReadMode,
    pub(super) checked: bool,
    pub(super) codec: Option<Codec>,
}

impl OpenOptions {
    /// Opens for reading, mapped, without checking raw records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether appends are wanted. One handle at a time can have a store open for writing. Opening for writing
    /// finishes what an interrupted delete or compact has begun.
    #[must_use]
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// How stored bytes are reached.
    #[must_use]
    pub fn read_mode(mut self, mode: ReadMode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether every read compares the stored bytes with their checksum, where one is kept. Compressed records are
    /// always checked by the frame's own checksum, where it has one.
    #[must_use]
    pub fn verify(mut self, checked: bool) -> Self {
        self.checked = checked;
        self
    }

    /// How records that this handle appends are stored, instead of as the store says.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
        self
    }

    /// Opens the store in the directory `path`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none; [`Locked`](crate::ErrorKind::Locked) when
    /// another handle writes (and this one wants to) or is deleting or compacting;
    /// [`NeedsRecovery`](crate::ErrorKind::NeedsRecovery) when it has to be opened for writing first;
    /// [`DictionaryMismatch`](crate::ErrorKind::DictionaryMismatch) when `dict.zr` is not the one that the store was
    /// written with; when it is damaged, or cannot be written although that is wanted.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        let directory: Arc<dyn Directory> = Arc::new(Disk::new(path.as_ref()));
        self.open_in(directory)
    }
}
