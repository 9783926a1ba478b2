//! What a reader works on: the committed length, the table and the chunks, frozen for the time of one call.
//!
//! A gather takes the current snapshot (one reference count) and never looks at anything else, so an append that
//! commits meanwhile cannot disturb it. When an index lies past the snapshot's length, or a record past the end of a
//! chunk as it was mapped, the snapshot is replaced by one that sees more. Replacing only ever adds; what a
//! snapshot holds stays mapped until the last call that uses it has ended.

use std::sync::{Arc, PoisonError};

use super::region::Region;
use super::{Store, checks, names};
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::{self, CheckEntry, CheckHeader};
use crate::format::{FormatVersion, Header, LOCATION_BYTES, Location, table_offset};
use crate::io::{Access, Pattern};

#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) header: Header,
    pub(super) table: Arc<Region>,
    /// Opened when a record in it is asked for.
    pub(super) chunks: Vec<Option<Arc<Region>>>,
    /// `None` where there is no `check.zr`.
    pub(super) checks: Option<Arc<Region>>,
    /// The header of `check.zr` at about the same time.
    pub(super) check_header: Option<CheckHeader>,
}

impl Snapshot {
    pub(super) fn length(&self) -> u64 {
        u64::from(self.header.length)
    }

    /// The table's entry of record `index`, which is below the length.
    pub(super) fn entry(&self, index: u64) -> std::io::Result<[u8; LOCATION_BYTES]> {
        let mut entry = [0; LOCATION_BYTES];
        self.table.read_exact(&mut entry, table_offset(index))?;
        Ok(entry)
    }

    /// The checks' entry of record `index`; the empty one where the file is shorter.
    pub(super) fn check(&self, index: u64) -> std::io::Result<CheckEntry> {
        let mut entry = [0; check::ENTRY_BYTES];
        if let Some(checks) = &self.checks
            && check::entry_offset(index + 1) <= checks.size()
        {
            checks.read_exact(&mut entry, check::entry_offset(index))?;
        }
        Ok(CheckEntry::decode(&entry))
    }

    /// The chunk, if it is open and holds all of the record.
    pub(super) fn chunk_of(&self, location: &Location) -> Option<&Arc<Region>> {
        let chunk = self.chunks.get(usize::from(location.chunk))?.as_ref()?;
        (location.end() <= chunk.size()).then_some(chunk)
    }
}

/// How many of the first `length` entries there are up to the last that was written. An entry of zeros, as a hole
/// reads, is an empty record in version 4 and no record in version 3.
pub(super) fn written_entries(
    version: FormatVersion,
    length: u64,
    read: impl Fn(&mut [u8], u64) -> std::io::Result<()>,
) -> std::io::Result<u64> {
    const PIECE: u64 = 4096;
    if version.min_record_bytes() == 0 {
        return Ok(length);
    }
    let (mut end, mut piece) = (length, Vec::new());
    while end > 0 {
        // The last entry alone, at first: it nearly always is one.
        let start = end - if end == length { 1 } else { end.min(PIECE) };
        piece.clear();
        piece.resize(usize::try_from(end - start).map_or(0, |count| count * LOCATION_BYTES), 0);
        read(&mut piece, table_offset(start))?;
        let (entries, _) = piece.as_chunks::<LOCATION_BYTES>();
        if let Some(last) = entries.iter().rposition(|entry| *entry != [0; LOCATION_BYTES]) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

impl Store {
    /// The index past the last entry of the table that was ever written; the length, if nothing is wrong.
    pub(super) fn written(&self, snapshot: &Snapshot) -> Result<u64> {
        let read = |piece: &mut [u8], offset| snapshot.table.read_exact(piece, offset);
        written_entries(self.version, snapshot.length(), read)
            .map_err(|error| Error::io("read the record table", self.file(names::META), error))
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&snapshot);
        snapshot
    }

    /// A snapshot of what is committed now.
    pub(super) fn refresh(&self) -> Result<Arc<Snapshot>> {
        let current = self.snapshot();
        if self.committed_header(&current)? == current.header {
            return Ok(current);
        }
        let _one_at_a_time = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.snapshot();
        let header = self.committed_header(&old)?;
        if header == old.header {
            return Ok(old);
        }
        let mut new = Snapshot::clone(&old);
        new.header = header;
        if new.table.size() < header.table_end() {
            new.table = Arc::new(self.map_table(&header)?);
        }
        if let Some(checks) = &new.checks
            && checks.size() < check::entry_offset(new.length())
        {
            new.checks = self.map_checks()?;
        }
        new.check_header = self.check_header()?;
        new.chunks.resize(usize::from(header.tail_chunk) + 1, None);
        Ok(self.publish(new))
    }

    fn committed_header(&self, snapshot: &Snapshot) -> Result<Header> {
        let words = snapshot.table.header_words();
        let words = words.map_err(|error| Error::io("read the header", self.file(names::META), error))?;
        let header = Header::from_words(words).map_err(|error| error.at_path(self.file(names::META)))?;
        if header.version != self.version {
            return Err(Error::corrupt("the format version has changed while the store was open")
                .at_path(self.file(names::META)));
        }
        Ok(header)
    }

    /// Maps `meta.zr`, which must hold every entry that `header` counts.
    pub(super) fn map_table(&self, header: &Header) -> Result<Region> {
        let table = Region::new(Arc::clone(&self.meta), self.mode, Pattern::Random)
            .map_err(|error| Error::io("map the record table", self.file(names::META), error))?;
        if table.size() < header.table_end() {
            return Err(Error::corrupt(format!(
                "the record table is cut short: {} records need {} bytes, the file has {}",
                header.length,
                header.table_end(),
                table.size()
            ))
            .at_path(self.file(names::META))
            .with_hint("repair() keeps the records whose entries are left"));
        }
        Ok(table)
    }

    /// The header of `check.zr`; `None` where there is none or it is damaged.
    fn check_header(&self) -> Result<Option<CheckHeader>> {
        match checks::read_header(self.directory.as_ref()) {
            Err(error) if error.is_corrupt() => Ok(None),
            header => header,
        }
    }

    /// Maps `check.zr`, if there is one.
    pub(super) fn map_checks(&self) -> Result<Option<Arc<Region>>> {
        let failed = |error| Error::io("open the checks", self.file(names::CHECKS), error);
        match self.directory.open(names::CHECKS, Access::Read) {
            Ok(file) => Ok(Some(Arc::new(Region::new(file, self.mode, Pattern::Random).map_err(failed)?))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// A snapshot in which the chunk of `location` is open and holds all of the record.
    pub(super) fn reach(&self, location: &Location) -> Result<Arc<Snapshot>> {
        let _one_at_a_time = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.snapshot();
        if old.chunk_of(location).is_some() {
            return Ok(old);
        }
        let path = self.file(&names::chunk(location.chunk));
        let slot = usize::from(location.chunk);
        if slot >= old.chunks.len() {
            return Err(Error::corrupt(format!(
                "the record table names chunk {}, the store's last is {}",
                location.chunk, old.header.tail_chunk
            ))
            .at_path(self.file(names::META)));
        }
        let file = self.directory.open(&names::chunk(location.chunk), Access::Read).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                Error::new(ErrorKind::Corrupt, "a chunk file is missing")
                    .at_path(&path)
                    .with_hint("put it back from a copy; the records of other chunks can be read")
                    .caused_by(error)
            } else {
                Error::io("open a chunk", &path, error)
            }
        })?;
        let chunk = Region::new(file, self.mode, Pattern::Random)
            .map_err(|error| Error::io("map a chunk", &path, error))?;
        if chunk.size() < location.end() {
            return Err(Error::corrupt(format!(
                "a record is cut short: it is bytes {}..{} of a chunk of {} bytes",
                location.offset,
                location.end(),
                chunk.size()
            ))
            .at_path(path)
            .in_chunk(u32::from(location.chunk))
            .at_offset(u64::from(location.offset))
            .with_hint("verify() lists all such records, the others stay readable"));
        }
        let mut new = Snapshot::clone(&old);
        if let Some(slot) = new.chunks.get_mut(slot) {
            *slot = Some(Arc::new(chunk));
        }
        Ok(self.publish(new))
    }

    /// Unmaps the chunks; those that are asked for are mapped again.
    pub(super) fn forget_chunks(&mut self) {
        let mut new = Snapshot::clone(&self.snapshot());
        new.chunks.fill(None);
        self.publish(new);
    }

    /// Forgets everything that is mapped, and starts from what is committed now.
    pub(super) fn reset_snapshot(&mut self, header: Header) -> Result<()> {
        let table = Arc::new(self.map_table(&header)?);
        let checks = self.map_checks()?;
        let check_header = self.check_header()?;
        let chunks = vec![None; usize::from(header.tail_chunk) + 1];
        self.publish(Snapshot { header, table, chunks, checks, check_header });
        Ok(())
    }
}
