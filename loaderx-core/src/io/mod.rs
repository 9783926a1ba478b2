//! The seam between the store and the operating system.
//!
//! Everything that the store writes, and everything that decides what a crash leaves behind, goes through two
//! small traits: a [`Directory`] names files, makes their names durable and holds locks; a [`File`] is a byte
//! array with positioned reads and writes, a length, a sync and one extra: an 8-byte store that no reader can
//! see half of. [`Disk`] is the implementation for real directories. With the feature `testing`, `memory`
//! holds a twin that keeps the files in memory, counts every call, can stop or fail at the k-th and can lose any
//! part of what was not yet synced: with it a test replays every crash that the protocol can meet.
//!
//! Reading has a second way beside [`File::read_exact_at`]: [`File::map`] gives a [`Mapping`], which costs a
//! page fault instead of a system call for each record. A file that cannot be mapped answers `None`, and the
//! store then reads by position.
//!
//! The rules that implementations keep:
//!
//! - names are plain file names of this one directory, never paths;
//! - a write or a new length is visible to every later read through any handle, at once;
//! - it is durable only after [`File::sync`] of the file *and*, for a file that is new, renamed or removed,
//!   [`Directory::sync`];
//! - an error may have happened before, in the middle of or after the effect: callers assume nothing about
//!   the bytes that the failed call addressed.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

mod disk;
mod lock;
mod mapping;
#[cfg(any(test, feature = "testing"))]
pub mod memory;

pub use disk::Disk;
pub use mapping::{Mapping, Pattern};

/// How [`Directory::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// To read and write; made empty if it does not exist, kept as it is if it does.
    Create,
}

/// What holds off other handles of the same store, in this process and in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockName {
    /// Held exclusively by the one handle that may write.
    Writer,
    /// Held shared by every open handle; exclusively while records move, which nobody may watch.
    Presence,
}

/// A held lock. Dropping it, or the end of the process in whatever way, releases it.
pub trait LockGuard: Debug + Send + Sync {
    /// Turns a shared lock into an exclusive one; `false` if another handle shares it, in which case it is
    /// shared as before.
    ///
    /// # Errors
    ///
    /// What the operating system reports, also where the file system cannot lock at all.
    fn upgrade(&self) -> io::Result<bool>;

    /// Turns an exclusive lock into a shared one.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn downgrade(&self) -> io::Result<()>;
}

/// One directory that holds one store.
pub trait Directory: Debug + Send + Sync {
    /// The path, as errors shall name it.
    fn path(&self) -> &Path;

    /// Opens the file `name`.
    ///
    /// # Errors
    ///
    /// What the operating system reports; [`io::ErrorKind::NotFound`] where the file has to exist and does not.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>>;

    /// The names of all files, in no particular order.
    ///
    /// # Errors
    ///
    /// What the operating system reports; [`io::ErrorKind::NotFound`] if there is no such directory.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Gives the file `from` the name `to`, replacing a file of that name in one step.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes the file `name`.
    ///
    /// # Errors
    ///
    /// What the operating system reports; [`io::ErrorKind::NotFound`] if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes every name made, changed and removed so far durable.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn sync(&self) -> io::Result<()>;

    /// Whether a file may be much longer than what is written to it without taking the room for it.
    fn keeps_holes(&self) -> bool;

    /// Takes a lock without waiting: [`LockName::Writer`] exclusively, [`LockName::Presence`] shared. `None`
    /// if another handle holds it in a way that excludes this one.
    ///
    /// Taking the presence lock never creates or changes a file.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn lock(&self, name: LockName) -> io::Result<Option<Box<dyn LockGuard>>>;
}

/// One open file.
pub trait File: Debug + Send + Sync {
    /// Its length in bytes at this moment.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends before; otherwise what the operating system reports.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, making the file longer where needed.
    ///
    /// # Errors
    ///
    /// What the operating system reports; a part of the bytes may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the file `size` bytes long. New bytes read as zero.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Stores 8 bytes, little-endian, so that any reader and any crash sees either the old or the new value.
    ///
    /// `offset` is a multiple of 8 within the first 4096 bytes and within the file's length.
    ///
    /// # Errors
    ///
    /// What the operating system reports; the old value then stands.
    fn store_u64(&self, offset: u64, value: u64) -> io::Result<()>;

    /// Makes content and length durable.
    ///
    /// # Errors
    ///
    /// What the operating system reports; nothing written since the last success may then be durable.
    fn sync(&self) -> io::Result<()>;

    /// Maps the file at its present length for reading; `None` where files of this kind cannot be mapped.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    fn map(&self, pattern: Pattern) -> io::Result<Option<Mapping>>;
}
