//! Output that appears under its final name only when it is complete.
//!
//! Everything is written below a sibling of the destination, `.NAME.loaderx-partial`, and renamed to `NAME` by
//! [`Staging::commit`]. Whatever ends the work before that, an error, a panic, a cancellation, removes the
//! sibling when the [`Staging`] is dropped. A killed process leaves it; the next run for the same destination
//! finds it, sees from the lock on it that nobody works there any more, and removes it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

const LOCK: &str = "lock";
const DATA: &str = "data";
/// Where a store waits while its records move into another one; no stream can have this name.
pub(super) const ASIDE: &str = ".aside";

/// A place to build a file or directory that appears under its final name all at once.
///
/// ```
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use loaderx_core::convert::Staging;
///
/// let wanted = dir.path().join("numbers.txt");
/// let staging = Staging::begin(&wanted)?;
/// std::fs::write(staging.path(), "1 2 3").unwrap();
/// assert!(!wanted.exists());
/// staging.commit()?;
/// assert_eq!(std::fs::read_to_string(&wanted).unwrap(), "1 2 3");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Staging {
    dest: PathBuf,
    root: PathBuf,
    data: PathBuf,
    /// Parents of the destination that did not exist before, innermost first.
    made_parents: Vec<PathBuf>,
    /// Held as long as the work goes on; the operating system drops it when the process dies.
    _lock: File,
    committed: bool,
}

impl Staging {
    /// Prepares to build what will be `dest`, and removes what a killed run for `dest` left behind.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyExists`] when `dest` is anything but an empty directory; [`ErrorKind::Locked`] when
    /// another run builds the same destination right now; when the parent directory cannot be written.
    pub fn begin(dest: impl AsRef<Path>) -> Result<Self> {
        let dest = dest.as_ref();
        let Some(name) = dest.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::invalid("the destination has no name of its own").at_path(dest));
        };
        refuse_occupied(dest)?;
        let parent = match dest.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made_parents = make_parents(parent)?;
        let root = parent.join(format!(".{name}.loaderx-partial"));
        match claim(&root) {
            Ok(lock) => Ok(Self {
                dest: dest.to_path_buf(),
                data: root.join(DATA),
                root,
                made_parents,
                _lock: lock,
                committed: false,
            }),
            Err(error) => {
                remove_empty(&made_parents);
                Err(error)
            }
        }
    }

    /// Where to build: nothing exists here yet, and the caller makes a file or a directory of it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.data
    }

    /// The final name.
    #[must_use]
    pub fn dest(&self) -> &Path {
        &self.dest
    }

    /// Gives what was built its final name. What it consists of must have been synced by its writer.
    ///
    /// # Errors
    ///
    /// When something else has appeared under the final name meanwhile, or the rename fails; nothing is left
    /// behind then.
    pub fn commit(mut self) -> Result<()> {
        refuse_occupied(&self.dest)?;
        // Not every platform renames a directory onto an empty one.
        if self.dest.is_dir() {
            fs::remove_dir(&self.dest)
                .map_err(|error| Error::io("replace the empty directory", &self.dest, error))?;
        }
        fs::rename(&self.data, &self.dest)
            .map_err(|error| Error::io("give the finished output its name", &self.dest, error))?;
        self.committed = true;
        let synced = self.dest.parent().map_or(Ok(()), sync_directory);
        synced.map_err(|error| Error::io("sync the directory of the output", &self.dest, error))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here: the next run for this destination tries again.
        let _ = fs::remove_dir_all(&self.root);
        if !self.committed {
            remove_empty(&self.made_parents);
        }
    }
}

/// Refuses a destination that exists, unless it is an empty directory.
fn refuse_occupied(dest: &Path) -> Result<()> {
    let occupied = |what: &str| {
        Err(Error::new(ErrorKind::AlreadyExists, format!("the destination is {what}"))
            .at_path(dest)
            .with_hint("choose another destination, or remove this one first"))
    };
    let metadata = match fs::symlink_metadata(dest) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("look at the destination", dest, error)),
    };
    if !metadata.is_dir() {
        return occupied("an existing file");
    }
    if dest.join("meta.zr").exists() {
        return occupied("an existing store");
    }
    let mut entries =
        fs::read_dir(dest).map_err(|error| Error::io("look into the destination", dest, error))?;
    if entries.next().is_some() {
        return occupied("a directory that is not empty");
    }
    Ok(())
}

fn make_parents(parent: &Path) -> Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> = parent
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .map(Path::to_path_buf)
        .collect();
    fs::create_dir_all(parent).map_err(|error| {
        remove_empty(&missing);
        Error::io("create the directory for the output", parent, error)
    })?;
    Ok(missing)
}

fn remove_empty(innermost_first: &[PathBuf]) {
    for path in innermost_first {
        // Fails where somebody else has put something in meanwhile, as it should.
        let _ = fs::remove_dir(path);
    }
}

/// Makes `root` anew with a lock in it, after removing a leftover.
fn claim(root: &Path) -> Result<File> {
    remove_leftover(root)?;
    let failed = |error| Error::io("create the directory for unfinished output", root, error);
    fs::create_dir(root).map_err(failed)?;
    let lock = File::create_new(root.join(LOCK)).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(busy(root)),
        // Without locks, two runs for one destination are told apart by the creation above alone.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(lock),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn remove_leftover(root: &Path) -> Result<()> {
    let failed = |error| Error::io("remove what an interrupted run left", root, error);
    let metadata = match fs::symlink_metadata(root) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let ours = metadata.is_dir()
        && fs::read_dir(root).map_err(failed)?.all(|entry| {
            entry.is_ok_and(|entry| [LOCK, DATA, ASIDE].iter().any(|&own| entry.file_name() == own))
        });
    if !ours {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "what is in the way of unfinished output was not made by loaderx",
        )
        .at_path(root)
        .with_hint("look at it and move it away"));
    }
    // Killed before the lock existed: nobody can hold it.
    if let Ok(lock) = File::open(root.join(LOCK))
        && let Err(TryLockError::WouldBlock) = lock.try_lock()
    {
        return Err(busy(root));
    }
    fs::remove_dir_all(root).map_err(failed)
}

fn busy(root: &Path) -> Error {
    Error::new(ErrorKind::Locked, "another run is writing this destination")
        .at_path(root)
        .with_hint("wait until it has ended, or choose another destination")
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Directories cannot be opened for syncing here; the file system orders a rename by itself.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
