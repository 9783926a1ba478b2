//! Compact: live records slide down over the garbage, in place, and the files become shorter.
//!
//! Records keep their indices and their stored bytes; only places change. They move in physical order, each to the
//! lowest free place, in steps of bounded size. A step whose records land wholly in free space copies them there and then
//! changes the table through the journal. Where the free space is smaller than what is worth a step, records move over
//! bytes that are still needed, so their bytes go through the journal too. Either way every record is whole, at its
//! old or its new place, at every instant.

use std::sync::PoisonError;

use super::journal::{self, Plan, Source};
use super::snapshot::Snapshot;
use super::{Store, names};
use crate::error::{Error, Result};
use crate::format::check::CheckEntry;
use crate::format::journal::JournalEntry;
use crate::format::{CHUNK_BYTES, Compression, Header, Location};
use crate::io::Access;

/// What a compaction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Length of all chunk files before, in bytes.
    pub bytes_before: u64,
    /// Length of all chunk files after.
    pub bytes_after: u64,
    /// Records that have moved.
    pub records_moved: u64,
    /// Stored bytes that have moved.
    pub bytes_moved: u64,
}

/// How much a step takes on. Small enough to bound memory and the journal, large enough that its few syncs do not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepLimits {
    /// Bytes that a step copies into free space.
    pub(super) direct_bytes: u64,
    /// Bytes that a step puts through the journal (a single longer record goes all the same).
    pub(super) journal_bytes: u64,
    /// Records of a step.
    pub(super) records: usize,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { direct_bytes: 256 << 20, journal_bytes: 32 << 20, records: 1 << 20 }
    }
}

/// A place in the store, in physical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: u16,
    offset: u32,
}

impl Place {
    /// Where a record of `length` bytes goes if this is the frontier. The rule of appends.
    fn fit(self, length: u32) -> Self {
        if u64::from(self.offset) + u64::from(length) >= CHUNK_BYTES {
            Self { chunk: self.chunk.saturating_add(1), offset: 0 }
        } else {
            self
        }
    }

    /// The place `length` bytes on; `length` fits by [`Place::fit`].
    fn after(self, length: u32) -> Self {
        Self { offset: self.offset.saturating_add(length), ..self }
    }
}

/// A record in physical order.
#[derive(Clone, Copy, Debug)]
struct Lying {
    place: Place,
    length: u32,
    index: u32,
}

/// Records with the same stored bytes, and where these go.
#[derive(Clone, Copy, Debug)]
struct Move<'a> {
    records: &'a [Lying],
    from: Place,
    to: Place,
    length: u32,
}

impl Store {
    /// Slides the live records together and makes the chunk files as short as they can be.
    ///
    /// Indices and content stay as they are. Works in place, with bounded memory for the bytes and 16 to 32 bytes for
    /// each record, and leaves a whole store whenever it is interrupted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) when another handle or process has the store open; when a
    /// record's table entry is damaged or records overlap (nothing has changed then); when a write fails, after
    /// which the handle may refuse everything until the store is opened for writing anew.
    pub fn compact(&mut self) -> Result<CompactReport> {
        self.compact_in_steps(StepLimits::default())
    }

    /// As [`Store::compact`], with steps of at most `direct_bytes` copied into free space, `journal_bytes` through the
    /// journal, and `records`. For tests that want many steps.
    ///
    /// # Errors
    ///
    /// As [`Store::compact`].
    #[cfg(any(test, feature = "testing"))]
    pub fn compact_with_steps(
        &mut self,
        direct_bytes: u64,
        journal_bytes: u64,
        records: usize,
    ) -> Result<CompactReport> {
        self.compact_in_steps(StepLimits { direct_bytes, journal_bytes, records })
    }

    fn compact_in_steps(&mut self, limits: StepLimits) -> Result<CompactReport> {
        self.check_usable()?;
        self.writer()?;
        self.alone(|store| store.compact_alone(limits))
    }

    fn compact_alone(&mut self, limits: StepLimits) -> Result<CompactReport> {
        // Shortening a file under a mapping is refused on some systems.
        self.forget_chunks();
        let snapshot = self.refresh()?;
        let sizes = self.chunk_sizes()?;
        let mut report =
            CompactReport { bytes_before: sizes.iter().map(|(_, size)| size).sum(), ..Default::default() };
        let lying = self.in_physical_order(&snapshot, &sizes)?;

        let mut frontier = Place { chunk: 0, offset: 0 };
        let mut pending: Vec<Move<'_>> = Vec::new();
        let same = |a: &Lying, b: &Lying| (a.place, a.length) == (b.place, b.length);
        for records in lying.chunk_by(same) {
            let Some(&Lying { place, length, .. }) = records.first() else { continue };
            let to = frontier.fit(length);
            if to > place {
                return Err(self.misplaced(records, "lies where no append puts one"));
            }
            frontier = to.after(length);
            // An empty record is in this list only if it is not at the start.
            if to != place || length == 0 {
                pending.push(Move { records, from: place, to, length });
                report.records_moved += records.len() as u64;
                report.bytes_moved += u64::from(length);
            }
        }
        self.make_missing_chunks(&sizes, frontier.chunk)?;
        let mut rest = pending.as_slice();
        while !rest.is_empty() {
            rest = self.step(&snapshot, rest, limits)?;
        }

        let after = Header { tail_chunk: frontier.chunk, tail_offset: frontier.offset, ..snapshot.header };
        let excess = |&(chunk, size): &(u16, u64)| {
            chunk > after.tail_chunk || (chunk == after.tail_chunk && size > u64::from(after.tail_offset))
        };
        if after != snapshot.header || sizes.iter().any(excess) {
            self.carry_out(&Plan { after, entries: Vec::new(), data: Vec::new(), trim: true })?;
        }
        report.bytes_after = self.chunk_sizes()?.iter().map(|(_, size)| size).sum();
        Ok(report)
    }

    /// Makes the chunks up to `last` that are not there, which no record misses: records are to move into them, and a
    /// journal that names a chunk is void without it.
    fn make_missing_chunks(&self, sizes: &[(u16, u64)], last: u16) -> Result<()> {
        let is_missing = |chunk: &u16| sizes.binary_search_by_key(chunk, |&(chunk, _)| chunk).is_err();
        let writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = false;
        for chunk in (0..=last).filter(is_missing) {
            let name = names::chunk(chunk);
            let file = self.directory.open(&name, Access::Create);
            file.map_err(|error| Error::io("make a chunk", self.file(&name), error))?;
            made = true;
        }
        if made { writer.sync_names() } else { Ok(()) }
    }

    /// Moves the first records of `moves`; returns those that are left.
    fn step<'m, 'a>(
        &self,
        snapshot: &Snapshot,
        moves: &'m [Move<'a>],
        limits: StepLimits,
    ) -> Result<&'m [Move<'a>]> {
        let Some(free_until) = moves.first().map(|first| first.from) else { return Ok(moves) };
        let take = |bytes_limit: u64, fits: &dyn Fn(&Move<'a>) -> bool| {
            let (mut bytes, mut records) = (0, 0);
            let count = moves
                .iter()
                .take_while(|next| {
                    bytes += u64::from(next.length);
                    records += next.records.len();
                    fits(next) && bytes <= bytes_limit && records <= limits.records
                })
                .count();
            moves.split_at(count)
        };
        let (direct, after_direct) =
            take(limits.direct_bytes, &|next| next.to.after(next.length) <= free_until);
        let (journaled, after_journaled) = take(limits.journal_bytes, &|_| true);
        let (step, rest, through_journal) = if direct.len() >= journaled.len().max(1) {
            (direct, after_direct, false)
        } else if journaled.is_empty() {
            // One record (or one with very many twins) beyond the limits goes alone.
            let (step, rest) = moves.split_at(1);
            (step, rest, true)
        } else {
            (journaled, after_journaled, true)
        };

        let mut plan = Plan { after: snapshot.header, entries: Vec::new(), data: Vec::new(), trim: false };
        let mut copies = Vec::new();
        for next in step {
            let source = Source { chunk: next.from.chunk, offset: next.from.offset, length: next.length };
            for lying in next.records {
                let (old, check) = self.entry_of(snapshot, u64::from(lying.index))?;
                let new = Location { chunk: next.to.chunk, offset: next.to.offset, ..old };
                let check = match check.for_location(&old) {
                    Some(crc) => CheckEntry::new(&new, crc),
                    None => CheckEntry::default(),
                };
                // Twins whose entries differ in more than the place would each bring bytes into the journal.
                if plan.entries.last().map(|last: &JournalEntry| last.location) != Some(new.encode()) {
                    copies.push((source, new));
                }
                let (index, location) = (u64::from(lying.index), new.encode());
                plan.entries.push(JournalEntry { index, location, check });
            }
        }
        if through_journal {
            plan.data = copies.iter().map(|(source, _)| *source).collect();
        } else {
            let mut writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
            journal::copy_directly(&mut writer, &copies)?;
        }
        self.carry_out(&plan)?;
        Ok(rest)
    }

    /// Every record by its place, after making sure that each is whole and none overlaps another.
    fn in_physical_order(&self, snapshot: &Snapshot, sizes: &[(u16, u64)]) -> Result<Vec<Lying>> {
        // Not made as long as the header says at once: the entries decide how many there are.
        let mut lying = Vec::new();
        for index in 0..snapshot.header.length {
            let (location, _) = self.entry_of(snapshot, u64::from(index))?;
            let known = sizes.binary_search_by_key(&location.chunk, |&(chunk, _)| chunk);
            let size = known.ok().and_then(|at| sizes.get(at)).map_or(0, |&(_, size)| size);
            if location.end() > size && location.stored_length > 0 {
                return Err(self
                    .damaged(
                        u64::from(index),
                        &location,
                        Error::corrupt(format!(
                            "the record is bytes {}..{} of a chunk of {size} bytes",
                            location.offset,
                            location.end()
                        )),
                    )
                    .with_hint("nothing was changed; repair() puts damaged records aside"));
            }
            let mut place = Place { chunk: location.chunk, offset: location.offset };
            if location.stored_length == 0 {
                // Empty records have no bytes: they all go to the very start, and most are there.
                let start = Place { chunk: 0, offset: 0 };
                if place == start {
                    continue;
                }
                place = start;
            }
            lying.push(Lying { place, length: location.stored_length, index });
        }
        let order = |record: &Lying| (record.place, record.length, record.index);
        if !lying.is_sorted_by_key(order) {
            lying.sort_unstable_by_key(order);
        }
        for pair in lying.windows(2) {
            let [a, b] = pair else { continue };
            let same = (a.place, a.length) == (b.place, b.length);
            let apart = a.place.chunk < b.place.chunk
                || u64::from(a.place.offset) + u64::from(a.length) <= u64::from(b.place.offset);
            if !same && !apart {
                return Err(self.misplaced(&[*a, *b], "overlaps another record"));
            }
        }
        Ok(lying)
    }

    /// The validated entry of a record and its check.
    pub(super) fn entry_of(&self, snapshot: &Snapshot, index: u64) -> Result<(Location, CheckEntry)> {
        let meta = self.file(names::META);
        let entry = snapshot
            .entry(index)
            .map_err(|error| Error::io("read the record table", &meta, error).for_record(index))?;
        let location = Location::decode(&entry, self.version)
            .and_then(|location| location.within_chunks(self.version))
            .map_err(|error| error.at_path(&meta).for_record(index))?;
        let check = snapshot.check(index).map_err(|error| {
            Error::io("read the checks", self.file(names::CHECKS), error).for_record(index)
        })?;
        Ok((location, check))
    }

    fn misplaced(&self, records: &[Lying], what: &str) -> Error {
        let error = Error::corrupt(format!(
            "a record {what}: {:?}",
            records.iter().map(|record| record.index).collect::<Vec<_>>()
        ));
        match records.last() {
            Some(record) => {
                let location = Location {
                    chunk: record.place.chunk,
                    offset: record.place.offset,
                    stored_length: record.length,
                    decoded_length: record.length,
                    compression: Compression::Raw,
                };
                self.damaged(u64::from(record.index), &location, error)
            }
            None => error,
        }
        .with_hint("nothing was changed; repair() puts damaged records aside")
    }
}
