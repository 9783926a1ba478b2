//! The one writer of a store: what it holds, and how it makes things durable.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::checks::Checks;
use super::names;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Header;
use crate::io::{Access, Directory, File, LockGuard};

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) meta: Arc<dyn File>,
    /// What is committed.
    pub(super) header: Header,
    /// `None` only for a store without `check.zr`, until the first change.
    pub(super) checks: Option<Checks>,
    /// Chunks that have been written since the last sync, and the one that is appended to.
    chunks: BTreeMap<u16, Chunk>,
    /// Files have been made since the last sync.
    names_changed: bool,
    /// A sync has failed: what the operating system has dropped cannot be synced by asking again.
    sync_failed: bool,
    /// Whether `own_until` says on the disk that a writer is at work.
    announced: bool,
    /// Whether `check.zr` is known to say nothing about indices past the length.
    checks_end: bool,
    /// Memory for the next append to collect small records in.
    pub(super) slab: Vec<u8>,
    // Held, never asked.
    _lock: Box<dyn LockGuard>,
}

#[derive(Debug)]
struct Chunk {
    file: Arc<dyn File>,
    dirty: bool,
}

impl Writer {
    pub(super) fn new(
        directory: Arc<dyn Directory>,
        meta: Arc<dyn File>,
        header: Header,
        checks: Option<Checks>,
        lock: Box<dyn LockGuard>,
    ) -> Self {
        let announced = checks.as_ref().is_some_and(|checks| checks.header().own_until == u64::MAX);
        Self {
            directory,
            meta,
            header,
            checks,
            chunks: BTreeMap::new(),
            names_changed: false,
            sync_failed: false,
            announced,
            checks_end: false,
            slab: Vec::new(),
            _lock: lock,
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The chunk's file, to write to. A chunk past the last one is made.
    pub(super) fn chunk(&mut self, chunk: u16) -> Result<Arc<dyn File>> {
        if let Some(known) = self.chunks.get_mut(&chunk) {
            known.dirty = true;
            return Ok(Arc::clone(&known.file));
        }
        let is_new = chunk > self.header.tail_chunk || self.header.length == 0;
        let name = names::chunk(chunk);
        let file = self
            .directory
            .open(&name, if is_new { Access::Create } else { Access::Write })
            .map_err(|error| Error::io("open a chunk for writing", self.file(&name), error))?;
        self.names_changed |= is_new;
        self.chunks.insert(chunk, Chunk { file: Arc::clone(&file), dirty: true });
        Ok(file)
    }

    /// Forgets the open chunks after files have been shortened or removed.
    pub(super) fn forget_chunks(&mut self) {
        self.chunks.clear();
    }

    /// Says durably that from here on a writer is at work that keeps the checks, so that what it has not synced is
    /// checked after a power cut. Once for each handle, and again after an append that was not committed.
    ///
    /// Checksums past the length go before that. With the table entries that they belong to, which stay, they would
    /// pass for records that a power cut has taken the new entries of.
    pub(super) fn announce(&mut self) -> Result<()> {
        if self.announced && self.checks_end {
            return Ok(());
        }
        let length = u64::from(self.header.length);
        if self.checks.as_ref().is_some_and(|checks| checks.header().synced_length < length) {
            self.sync()?;
        }
        if let Some(checks) = &mut self.checks {
            checks.truncate(u64::from(self.header.length))?;
            checks.write_header(|header| header.own_until = u64::MAX)?;
            checks.sync()?;
            // The file itself may be new.
            self.sync_names()?;
        }
        self.announced = true;
        self.checks_end = true;
        Ok(())
    }

    /// An append begins: checksums are written past the length, until [`Writer::append_committed`].
    pub(super) fn append_begins(&mut self) -> Result<()> {
        self.announce()?;
        self.checks_end = false;
        Ok(())
    }

    pub(super) fn append_committed(&mut self) {
        self.checks_end = true;
    }

    /// Stores the header, first the half with the tail chunk, then the half with offset and length.
    pub(super) fn commit(&mut self, header: Header) -> Result<()> {
        let (old, new) = (self.header.words(), header.words());
        let mut stored = Ok(());
        for (offset, (old, new)) in [0, 8].into_iter().zip(old.into_iter().zip(new)) {
            if stored.is_ok() && old != new {
                stored = self.meta.store_u64(offset, new);
            }
        }
        match stored {
            Ok(()) => {
                self.header = header;
                Ok(())
            }
            Err(error) => {
                // Whatever has been stored is a header that holds: with a frontier that is further than it needs to be.
                if let Ok(words) = super::region::header_words(self.meta.as_ref())
                    && let Ok(header) = Header::from_words(words)
                {
                    self.header = header;
                }
                Err(Error::io("store the header", self.file(names::META), error))
            }
        }
    }

    /// Commits a header whose frontier may lie in a chunk that is still to be made.
    pub(super) fn move_frontier(&mut self, header: Header) -> Result<()> {
        if header.tail_chunk > self.header.tail_chunk {
            self.chunk(header.tail_chunk)?;
        }
        self.commit(header)
    }

    /// Makes everything committed durable: chunks, names, table and header, checks, in this order.
    pub(super) fn sync(&mut self) -> Result<()> {
        if self.sync_failed {
            return Err(Error::new(
                ErrorKind::Io,
                "an earlier sync has failed, and what it was for may be lost",
            )
            .at_path(self.directory.path())
            .with_hint("open the store anew for writing: it checks the records since the last good sync"));
        }
        let result = self.sync_all();
        self.sync_failed = result.is_err();
        result
    }

    fn sync_all(&mut self) -> Result<()> {
        self.sync_foreign_chunks()?;
        self.sync_chunks()?;
        if self.names_changed {
            self.sync_names()?;
            self.names_changed = false;
        }
        self.sync_meta()?;
        let length = u64::from(self.header.length);
        let frontier = (self.header.tail_chunk, self.header.tail_offset);
        if let Some(checks) = &mut self.checks {
            checks.write_header(|header| {
                header.synced_length = length;
                header.frontier = frontier;
                if header.own_until != u64::MAX {
                    header.own_until = header.own_until.min(length);
                }
            })?;
            checks.sync()?;
        }
        // Only the tail is appended to; other chunks need not stay open.
        let tail = self.header.tail_chunk;
        self.chunks.retain(|&chunk, _| chunk == tail);
        Ok(())
    }

    /// Makes the bytes of another program's records durable, which have no checksums to be recovered by.
    fn sync_foreign_chunks(&self) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        if self.announced || checks.header().synced_length >= u64::from(self.header.length) {
            return Ok(());
        }
        // Those that are there: what is lost cannot be made durable, and its records are errors already.
        let listed = self
            .directory
            .names()
            .map_err(|error| Error::io("list the store's directory", self.directory.path(), error))?;
        for name in listed.iter().filter(|name| names::parse_chunk(name).is_some()) {
            let file = self.directory.open(name, Access::Write);
            file.and_then(|file| file.sync())
                .map_err(|error| Error::io("sync a chunk", self.file(name), error))?;
        }
        Ok(())
    }

    /// Makes the bytes of the chunks that this writer has written durable.
    pub(super) fn sync_chunks(&mut self) -> Result<()> {
        for (&chunk, known) in &mut self.chunks {
            if known.dirty {
                known.file.sync().map_err(|error| {
                    Error::io("sync a chunk", self.directory.path().join(names::chunk(chunk)), error)
                })?;
                known.dirty = false;
            }
        }
        Ok(())
    }

    pub(super) fn sync_meta(&self) -> Result<()> {
        self.meta.sync().map_err(|error| Error::io("sync the record table", self.file(names::META), error))
    }

    pub(super) fn sync_names(&self) -> Result<()> {
        self.directory.sync().map_err(|error| Error::io("sync the directory", self.directory.path(), error))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Says that records from here on are somebody else's, once all of ours are durable. What fails here costs only
        // that the next writer looks at the records since the last sync.
        if !self.announced || self.sync_failed || self.sync().is_err() {
            return;
        }
        let length = u64::from(self.header.length);
        if let Some(checks) = &mut self.checks {
            let _ = checks.write_header(|header| header.own_until = length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FormatVersion, HEADER_BYTES};
    use crate::io::LockName;
    use crate::io::memory::{Fault, MemoryDisk};

    #[test]
    fn a_commit_that_is_cut_in_half_has_the_new_tail_chunk_and_the_old_length() {
        let old =
            Header { version: FormatVersion::V3, tail_chunk: 4, tail_offset: u32::MAX - 5, length: 70_000 };
        let new = Header { tail_chunk: 5, tail_offset: 900, length: 70_001, ..old };
        for (calls, left) in [(0, old), (1, Header { tail_chunk: 5, ..old }), (2, new)] {
            let disk = MemoryDisk::new();
            disk.put(names::META, &old.encode());
            let meta = disk.directory().open(names::META, Access::Write).unwrap();
            let lock = disk.directory().lock(LockName::Writer).unwrap().unwrap();
            let mut writer = Writer::new(disk.directory(), meta, old, None, lock);
            disk.inject(Fault::stop_at(calls + 1));
            assert_eq!(writer.commit(new).is_ok(), calls == 2);
            disk.restart();
            let bytes = disk.content(names::META).unwrap();
            let found = Header::decode(bytes.first_chunk::<HEADER_BYTES>().unwrap()).unwrap();
            assert_eq!(found, left, "after {calls} stores");
        }
    }
}
