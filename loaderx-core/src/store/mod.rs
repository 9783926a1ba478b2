//! The record store: a directory of chunk files and a table that says where each record lies.
//!
//! A [`Store`] is made once ([`CreateOptions`]), opened any number of times ([`OpenOptions`]), appended to by one
//! handle at a time and read by many. Records are bytes; what they mean is for a [`Schema`] and for the views
//! (see [`crate::view`]) to say.
//!
//! - An append of any number of records is visible as a whole or not at all, to every thread and process, and after
//!   any crash. It is durable after [`Store::sync`].
//! - A gather copies or decodes records at any indices into memory of the caller, at the speed of memory.
//! - Readers never wait for the writer, and see what it has committed when they next ask for [`Store::len`] or for an
//!   index that is new to them.
//! - Deleting and compacting need the store alone: within the process the borrow checker sees to it, across
//!   processes a lock.

mod append;
mod checks;
mod compact;
mod create;
mod delete;
mod frontier;
mod gather;
mod journal;
mod names;
mod open;
mod options;
mod read;
mod recover;
mod region;
mod repair;
mod scan;
mod snapshot;
mod stats;
mod verdict;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::codec::{Codec, Dictionary};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::io::{Directory, File, LockGuard};
use crate::schema::Schema;
use snapshot::Snapshot;
use writer::Writer;

pub use crate::codec::{Training, train_dictionary};
pub use compact::CompactReport;
pub use options::{CreateOptions, OpenOptions, ReadMode};
pub use recover::Recovery;
pub use repair::{RepairReport, repair, repair_in};
pub use scan::{Fault, FaultKind};
pub use stats::Stats;
pub use verify::VerifyReport;

/// A directory of records that are gathered by index.
///
/// Appends and gathers run concurrently from many threads.
///
/// ```
/// use loaderx_core::{Codec, CreateOptions, Store};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("words");
/// let store = Store::create(&path, CreateOptions::new().codec(Codec::zstd()))?;
/// store.append_slices([&b"one"[..], b"two", b"three"])?;
/// store.sync()?; // from here on a power cut takes nothing of it
///
/// let reader = Store::open(&path)?;
/// let (bytes, offsets) = reader.gather_packed(&[2, 0])?;
/// assert_eq!((&bytes[..], &offsets[..]), (&b"threeone"[..], &[0, 5, 8][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Store {
    directory: Arc<dyn Directory>,
    path: PathBuf,
    version: FormatVersion,
    codec: Codec,
    schema: Option<Schema>,
    mode: ReadMode,
    /// Whether reads compare checksums.
    checked: bool,
    dictionary: Option<Arc<Dictionary>>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Held while a snapshot is replaced by one that sees more.
    growth: Mutex<()>,
    meta: Arc<dyn File>,
    writer: Option<Mutex<Writer>>,
    /// A delete or compact has failed half-way: only recovery makes sense of the files.
    broken: AtomicBool,
    presence: Box<dyn LockGuard>,
    recovery: Recovery,
}

impl Store {
    /// Makes a store in the directory `path`.
    ///
    /// # Errors
    ///
    /// As [`CreateOptions::create`].
    pub fn create(path: impl AsRef<Path>, options: CreateOptions) -> Result<Self> {
        options.create(path)
    }

    /// Opens the store in `path` for reading. Nothing is written, and no other handle is kept from anything but
    /// deleting and compacting.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens the store in `path` for reading and appending.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open_writable(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().writable(true).open(path)
    }

    /// Records in the store, those included that another process has committed meanwhile.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self.refresh() {
            Ok(snapshot) => snapshot.length(),
            // The next read gives the error; what was there before can still be read.
            Err(_) => self.snapshot().length(),
        }
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
        self.writer.is_some()
    }

    /// Makes everything that was appended so far durable, or says why it is not.
    ///
    /// # Errors
    ///
    /// When the operating system reports a failure. What an operating system could not write it may drop, so from then
    /// on every sync of this handle fails; open the store anew, which checks what was not yet synced.
    pub fn sync(&self) -> Result<()> {
        self.check_usable()?;
        self.writer()?.lock().unwrap_or_else(PoisonError::into_inner).sync()
    }

    fn writer(&self) -> Result<&Mutex<Writer>> {
        self.writer.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::ReadOnly, "the store was opened for reading only")
                .at_path(&self.path)
                .with_hint("open it with Store::open_writable")
        })
    }

    fn check_usable(&self) -> Result<()> {
        if self.broken.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::NeedsRecovery,
                "a delete or compact has failed half-way and has to be finished first",
            )
            .at_path(&self.path)
            .with_hint("drop this handle and open the store for writing"));
        }
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
