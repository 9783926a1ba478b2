//! A directory in memory that can be stopped, made to fail, and robbed of what was not yet synced.
//!
//! ```
//! use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
//! use loaderx_core::{CreateOptions, OpenOptions};
//!
//! # fn main() -> loaderx_core::Result<()> {
//! let disk = MemoryDisk::new();
//! let store = CreateOptions::new().create_in(disk.directory())?;
//! store.append_fixed(b"abcdefgh", 4)?;
//! store.sync()?;
//!
//! disk.inject(Fault::stop_at(2)); // from the second changing call on, nothing happens any more
//! assert!(store.append_fixed(b"ijkl", 4).is_err());
//! drop(store);
//! disk.power_cut(|unsynced| unsynced.class == Class::Table); // reboot; what the table had unsynced is lost
//!
//! let store = OpenOptions::new().writable(true).open_in(disk.directory())?;
//! assert_eq!(store.get(1)?, b"efgh");
//! # Ok(())
//! # }
//! ```
//!
//! Calls that change something are numbered from 1, in the order in which they are made, since the last
//! [`MemoryDisk::inject`] or [`MemoryDisk::restart`]; reads are numbered apart from them. Files cannot be mapped, so a
//! store here reads by position.

mod fault;
mod state;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use fault::{Class, Fault, Unsynced};
use state::State;

use super::{Access, Directory, File, LockGuard, LockName, Mapping, Pattern};

/// A directory in memory. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self { path: PathBuf::from("memory"), state: Arc::default() }
    }

    /// The directory as a store wants it.
    #[must_use]
    pub fn directory(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    /// Lets `fault` happen, counting calls from now on. Replaces an earlier fault.
    pub fn inject(&self, fault: Fault) {
        self.state().plan(Some(fault));
    }

    /// Calls that changed something since the last [`MemoryDisk::inject`], [`MemoryDisk::restart`] or
    /// [`MemoryDisk::power_cut`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Reads in the same span.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// What those changing calls were, one line each.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    /// The process dies and a new one starts: no fault any more, every lock is released, old handles are
    /// dead, and everything written is still there.
    pub fn restart(&self) {
        self.state().restart();
    }

    /// The machine dies and starts again: as [`MemoryDisk::restart`], and of what was not yet synced
    /// everything is lost for which `lost` answers true. What is kept is applied in the order in which it was
    /// written.
    pub fn power_cut(&self, lost: impl FnMut(&Unsynced<'_>) -> bool) {
        self.state().power_cut(lost);
    }

    /// The bytes of the file `name` as a reader sees them now.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.state().content(name)
    }

    /// Puts a file there, durable at once: for damaged and hostile content.
    pub fn put(&self, name: &str, content: &[u8]) {
        self.state().put(name, content);
    }

    /// The names of all files, sorted.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        self.state().names()
    }

    /// A separate directory with the same files, all of them durable, and no locks or faults.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { path: self.path.clone(), state: Arc::new(Mutex::new(self.state().fork())) }
    }

    /// A separate directory in exactly the same state, unsynced changes and fault included. One stopped run can
    /// so be continued by any number of different power cuts.
    #[must_use]
    pub fn deep_clone(&self) -> Self {
        Self { path: self.path.clone(), state: Arc::new(Mutex::new(self.state().clone())) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory for MemoryDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let (node, epoch) = (state.open(name, access)?, state.epoch);
        drop(state);
        Ok(Arc::new(MemoryFile { disk: self.clone(), node, epoch, writable: access != Access::Read }))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.reading()?;
        Ok(state.names())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.state().sync_names()
    }

    fn keeps_holes(&self) -> bool {
        false
    }

    fn lock(&self, name: LockName) -> io::Result<Option<Box<dyn LockGuard>>> {
        let mut state = self.state();
        let taken = match name {
            LockName::Writer => !std::mem::replace(&mut state.writer, true),
            LockName::Presence => {
                let free = !state.exclusive;
                state.shared += usize::from(free);
                free
            }
        };
        let epoch = state.epoch;
        drop(state);
        Ok(taken.then(|| -> Box<dyn LockGuard> { Box::new(MemoryLock { disk: self.clone(), name, epoch }) }))
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    node: usize,
    epoch: u64,
    writable: bool,
}

impl MemoryFile {
    fn alive(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.epoch == self.epoch {
            Ok(state)
        } else {
            Err(io::Error::other("the handle belongs to a process that has died"))
        }
    }

    fn changing(&self) -> io::Result<MutexGuard<'_, State>> {
        if !self.writable {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is open for reading"));
        }
        self.alive()
    }
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        self.alive()?.size(self.node)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.alive()?.read(self.node, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.changing()?.write(self.node, bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.changing()?.set_size(self.node, size)
    }

    fn store_u64(&self, offset: u64, value: u64) -> io::Result<()> {
        self.changing()?.store_u64(self.node, offset, value)
    }

    fn sync(&self) -> io::Result<()> {
        self.alive()?.sync(self.node)
    }

    fn map(&self, _pattern: Pattern) -> io::Result<Option<Mapping>> {
        Ok(None)
    }
}

#[derive(Debug)]
struct MemoryLock {
    disk: MemoryDisk,
    name: LockName,
    epoch: u64,
}

impl LockGuard for MemoryLock {
    fn upgrade(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        if state.epoch != self.epoch {
            return Err(io::Error::other("the lock belongs to a process that has died"));
        }
        let alone = state.shared == 1;
        state.exclusive = alone;
        Ok(alone)
    }

    fn downgrade(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.epoch == self.epoch {
            state.exclusive = false;
        }
        Ok(())
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.epoch != self.epoch {
            return;
        }
        match self.name {
            LockName::Writer => state.writer = false,
            LockName::Presence => {
                // An exclusive holder is the only one.
                state.exclusive = false;
                state.shared = state.shared.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(disk: &MemoryDisk, name: &str, bytes: &[u8], at: u64) -> io::Result<()> {
        disk.open(name, Access::Create)?.write_all_at(bytes, at)
    }

    #[test]
    fn unsynced_writes_and_names_can_be_lost_one_by_one() {
        let disk = MemoryDisk::new();
        write(&disk, "0.zr", b"aaaa", 0).unwrap();
        disk.open("0.zr", Access::Write).unwrap().sync().unwrap();
        Directory::sync(&disk).unwrap();
        write(&disk, "0.zr", b"bb", 4).unwrap();
        write(&disk, "0.zr", b"cc", 6).unwrap();
        write(&disk, "1.zr", b"dd", 0).unwrap();

        let lost = disk.deep_clone();
        lost.power_cut(|unsynced| unsynced.offset == Some(4));
        assert_eq!(lost.content("0.zr").unwrap(), b"aaaa\0\0cc");
        assert_eq!(lost.content("1.zr").unwrap(), b"dd");

        let lost = disk.deep_clone();
        lost.power_cut(|unsynced| unsynced.class == Class::Names);
        assert_eq!(lost.content("0.zr").unwrap(), b"aaaabbcc");
        assert_eq!(lost.content("1.zr"), None);

        disk.power_cut(|_| true);
        assert_eq!(disk.content("0.zr").unwrap(), b"aaaa");
        assert_eq!(disk.file_names(), ["0.zr"]);
    }

    #[test]
    fn a_removed_file_comes_back_when_its_removal_is_lost() {
        let disk = MemoryDisk::new();
        disk.put("a", b"old");
        disk.put("b", b"new");
        Directory::rename(&disk, "b", "a").unwrap();
        assert_eq!(disk.content("a").unwrap(), b"new");
        disk.power_cut(|_| true);
        assert_eq!(disk.content("a").unwrap(), b"old");
        assert_eq!(disk.content("b").unwrap(), b"new");
    }

    #[test]
    fn a_stop_freezes_everything_and_a_failure_only_one_call() {
        let disk = MemoryDisk::new();
        disk.put("a", b"....");
        disk.inject(Fault::stop_at(2));
        let file = disk.open("a", Access::Write).unwrap();
        file.write_all_at(b"1", 0).unwrap();
        assert!(file.write_all_at(b"2", 1).is_err());
        assert!(file.write_all_at(b"3", 2).is_err());
        assert_eq!(disk.content("a").unwrap(), b"1...");

        disk.restart();
        assert!(file.write_all_at(b"4", 3).is_err(), "the old process is dead");
        disk.inject(Fault::fail_at(1, io::ErrorKind::StorageFull));
        let file = disk.open("a", Access::Write).unwrap();
        assert_eq!(file.write_all_at(b"22", 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
        // Half of a failed write may have happened.
        assert_eq!(disk.content("a").unwrap(), b"12..");
        file.write_all_at(b"3", 2).unwrap();
        assert_eq!(disk.changes(), 2);
    }

    #[test]
    fn locks_exclude_each_other_and_die_with_their_process() {
        let disk = MemoryDisk::new();
        let first = disk.lock(LockName::Writer).unwrap().unwrap();
        assert!(disk.lock(LockName::Writer).unwrap().is_none());
        drop(first);
        let _leaked = disk.lock(LockName::Writer).unwrap().unwrap();
        disk.restart();
        assert!(disk.lock(LockName::Writer).unwrap().is_some());

        let one = disk.lock(LockName::Presence).unwrap().unwrap();
        let two = disk.lock(LockName::Presence).unwrap().unwrap();
        assert!(!one.upgrade().unwrap());
        drop(two);
        assert!(one.upgrade().unwrap());
        assert!(disk.lock(LockName::Presence).unwrap().is_none());
        one.downgrade().unwrap();
        assert!(disk.lock(LockName::Presence).unwrap().is_some());
    }
}
