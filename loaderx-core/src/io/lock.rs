//! Advisory locks on files, which the operating system drops with the process.
//!
//! On unix the presence lock is a shared lock on `meta.zr` itself, which needs read access only: a reader of a
//! read-only directory, or one that belongs to somebody else, takes it like any other. Windows locks are
//! mandatory for the bytes they cover, so there a file of its own (`presence.zr`) carries it, made by
//! writers; where that file is missing no writer of ours has been, and nothing moves under a reader.

use std::fs::{self, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::LockGuard;

/// The file whose exclusive lock makes a handle the writer. Left behind on purpose: removing a lock file is a
/// race, an unlocked one does no harm.
const WRITER_FILE: &str = "lock.zr";

#[cfg(not(windows))]
const PRESENCE_FILE: &str = "meta.zr";
#[cfg(windows)]
const PRESENCE_FILE: &str = "presence.zr";

/// How often and how long to wait for a lock that is held.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Tries for a tenth of a second. A program that starts another has, from the fork to the exec, a child with copies of
/// all its descriptors: a lock that has just been released is held until then by nobody that anyone knows of.
fn patiently(attempt: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

#[derive(Debug)]
pub(super) struct FileLock {
    // `None` where there is nothing to lock, or a file system that cannot lock.
    file: Option<fs::File>,
}

impl FileLock {
    pub(super) fn writer(directory: &Path) -> io::Result<Option<Self>> {
        let open = |name| {
            fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(directory.join(name))
        };
        let file = open(WRITER_FILE)?;
        if cfg!(windows) {
            open(PRESENCE_FILE)?;
        }
        match patiently(|| file.try_lock()) {
            Ok(()) => Ok(Some(Self { file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn presence(directory: &Path) -> io::Result<Option<Self>> {
        let file = match fs::File::open(directory.join(PRESENCE_FILE)) {
            Ok(file) => file,
            Err(error) if cfg!(windows) && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(Self { file: None }));
            }
            Err(error) => return Err(error),
        };
        match patiently(|| file.try_lock_shared()) {
            Ok(()) => Ok(Some(Self { file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks can be read; what needs a lock to be safe is refused in `upgrade`.
            Err(TryLockError::Error(_)) => Ok(Some(Self { file: None })),
        }
    }

    fn file(&self) -> io::Result<&fs::File> {
        self.file
            .as_ref()
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "this file system cannot lock files"))
    }
}

impl LockGuard for FileLock {
    fn upgrade(&self) -> io::Result<bool> {
        let file = self.file()?;
        // Windows refuses a second lock on the same handle; unix converts the one that is held.
        if cfg!(windows) {
            file.unlock()?;
        }
        match patiently(|| file.try_lock()) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => {
                // The attempt may have dropped the shared lock. Nobody can have taken the exclusive one
                // meanwhile, as that needs the writer lock, which the caller holds.
                self.downgrade()?;
                Ok(false)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn downgrade(&self) -> io::Result<()> {
        let file = self.file()?;
        if cfg!(windows) {
            // Fails if the upgrade has failed, and then there is nothing to release.
            let _ = file.unlock();
        }
        file.try_lock_shared().map_err(io::Error::from)
    }
}
