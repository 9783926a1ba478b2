//! Real directories and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::lock::FileLock;
use super::mapping::HeaderPage;
use super::{Access, Directory, File, LockGuard, LockName, Mapping, Pattern};

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// The directory at `path`, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes the directory and its missing parents, durably, and gives it.
    ///
    /// # Errors
    ///
    /// What the operating system reports.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if !path.is_dir() {
            fs::create_dir_all(&path)?;
            if let Some(parent) = path.parent() {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                sync_directory(parent)?;
            }
        }
        Ok(Self { path })
    }
}

impl Directory for Disk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match access {
            Access::Read => {}
            Access::Write => {
                options.write(true);
            }
            Access::Create => {
                options.write(true).create(true).truncate(false);
            }
        }
        let path = self.path.join(name);
        // Asked before opening: to open a pipe waits for its other end. A directory opens on unix and fails only
        // at the first read, with a less telling error.
        if fs::metadata(&path).is_ok_and(|what| !what.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = options.open(path)?;
        Ok(Arc::new(DiskFile { file, header: Mutex::new(None) }))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not Unicode is none of a store's.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_directory(&self.path)
    }

    fn keeps_holes(&self) -> bool {
        // NTFS reserves the whole length of a file that is not marked as sparse.
        cfg!(unix)
    }

    fn lock(&self, name: LockName) -> io::Result<Option<Box<dyn LockGuard>>> {
        let lock = match name {
            LockName::Writer => FileLock::writer(&self.path)?,
            LockName::Presence => FileLock::presence(&self.path)?,
        };
        Ok(lock.map(|lock| -> Box<dyn LockGuard> { Box::new(lock) }))
    }
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    // Windows cannot sync a directory; NTFS journals names by itself, in order.
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

#[derive(Debug)]
struct DiskFile {
    file: fs::File,
    // Mapped at the first header store, so only ever for the one file that has a header.
    header: Mutex<Option<HeaderPage>>,
}

impl File for DiskFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = buffer.get_mut(read..).unwrap_or_default();
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(windows)]
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = bytes.get(written..).unwrap_or_default();
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn store_u64(&self, offset: u64, value: u64) -> io::Result<()> {
        let mut header = self.header.lock().unwrap_or_else(PoisonError::into_inner);
        // The old bytes are written over themselves first. That changes nothing, but makes the file system
        // reserve what a copy-on-write of this page needs: a full disk is an error here and would be a signal
        // below. It also fails by itself if the file has become shorter than its header.
        let mut old = [0; 8];
        self.read_exact_at(&mut old, offset)?;
        self.write_all_at(&old, offset)?;
        if header.is_none() {
            match HeaderPage::new(&self.file) {
                Ok(page) => *header = Some(page),
                // Some network file systems have no shared mappings. Eight bytes of one page, written in one
                // call, are the nearest they offer.
                Err(_) => return self.write_all_at(&value.to_le_bytes(), offset),
            }
        }
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        match &*header {
            Some(page) => page.store_u64(offset, value),
            None => Err(io::Error::other("the header is not mapped")),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(page) = &*self.header.lock().unwrap_or_else(PoisonError::into_inner) {
            page.flush()?;
        }
        self.file.sync_data()
    }

    fn map(&self, pattern: Pattern) -> io::Result<Option<Mapping>> {
        Mapping::new(&self.file, pattern).map(Some)
    }
}
