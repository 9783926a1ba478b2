//! The record store: a directory of chunk files and a table that says where each record lies.

mod append;
mod gather;
mod open;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::codec::Codec;
use crate::error::Result;
use crate::format::{FormatVersion, Header};
use crate::schema::Schema;

pub use open::{CreateOptions, OpenOptions};

/// A directory of records that are gathered by index.
///
/// Appends and gathers run concurrently from many threads.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    version: FormatVersion,
    codec: Codec,
    schema: Option<Schema>,
    writable: bool,
    table: File,
    length: AtomicU64,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    header: Header,
    chunks: Vec<std::sync::Arc<File>>,
}

impl Store {
    /// Makes a store in the directory `path`.
    ///
    /// # Errors
    ///
    /// When a store is already there or the directory cannot be written.
    pub fn create(path: impl AsRef<Path>, options: CreateOptions) -> Result<Self> {
        options.create(path)
    }

    /// Opens the store in `path` for reading.
    ///
    /// # Errors
    ///
    /// When there is none or it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens the store in `path` for reading and appending.
    ///
    /// # Errors
    ///
    /// When there is none, it is damaged, or it cannot be written.
    pub fn open_writable(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().writable(true).open(path)
    }

    /// Records in the store.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Whether it holds no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The store's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the records mean; `None` for a store of plain bytes.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// How appended records are stored.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The format version and so the limits.
    #[must_use]
    pub fn format(&self) -> FormatVersion {
        self.version
    }

    /// Whether this handle may append.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}
