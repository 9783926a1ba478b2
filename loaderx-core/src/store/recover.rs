//! What opening for writing does before anything else: finish a journal, look at what was not yet synced.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::journal::{self, Found};
use super::scan::{Fault, FaultKind, Scan, Sound, wrong_dictionary};
use super::snapshot::Snapshot;
use super::writer::Writer;
use super::{Store, names};
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::{CheckEntry, CheckHeader};
use crate::format::{HEADER_BYTES, Header, LOCATION_BYTES, table_offset};
use crate::io::{Access, Directory, LockGuard};

/// As many of the last records are held against the frontier whatever speaks for it.
const ALWAYS_SUSPECT: u64 = 64;

/// What opening for writing had to put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// An interrupted delete or compact was finished.
    pub journal_finished: bool,
    /// A journal that was not complete, or of another state of the store, was removed.
    pub journal_removed: bool,
    /// Records past the last sync that were looked at.
    pub records_checked: u64,
    /// Records that were lost with their bytes and cut off, from this index on.
    pub truncated_at: Option<u64>,
    /// How many records were cut off.
    pub records_lost: u64,
    /// The file with the table entries that were cut off: the header as it was, then the entries.
    pub aside: Option<String>,
    /// Why the first of them was.
    pub reason: Option<String>,
    /// The write frontier was moved to where the records end.
    pub frontier_moved: bool,
}

impl Recovery {
    fn is_nothing(&self) -> bool {
        *self == Self { records_checked: self.records_checked, ..Self::default() }
    }
}

/// Finishes or removes a journal.
pub(super) fn recover_journal(
    writer: &mut Writer,
    presence: &dyn LockGuard,
    recovery: &mut Recovery,
) -> Result<()> {
    match journal::read(writer.directory.as_ref(), writer.header)? {
        Found::Nothing => {}
        Found::Void => {
            journal::drop_journal(writer, true)?;
            recovery.journal_removed = true;
        }
        Found::Valid(journal) => {
            wait_alone(writer.directory.as_ref(), presence)?;
            let done = journal::redo(writer, &journal);
            let released = presence.downgrade();
            done?;
            released.map_err(|error| Error::io("unlock the store", writer.directory.path(), error))?;
            recovery.journal_finished = true;
        }
    }
    Ok(())
}

/// Takes back a length whose table entries a power cut has kept from being written. Only records past the last sync
/// can be meant; a table that lacks older entries was cut by something else.
pub(super) fn recover_table(writer: &mut Writer, recovery: &mut Recovery) -> Result<()> {
    let Some(checks) = &writer.checks else { return Ok(()) };
    let header = writer.header;
    let size = writer
        .meta
        .size()
        .map_err(|error| Error::io("look at the record table", writer.file(names::META), error))?;
    let present = size.saturating_sub(HEADER_BYTES as u64) / LOCATION_BYTES as u64;
    let length = u64::from(header.length);
    if present >= length || present < checks.header().synced_length || length > checks.header().own_until {
        return Ok(());
    }
    writer.commit(Header { length: u32::try_from(present).unwrap_or(header.length), ..header })?;
    recovery.truncated_at = Some(present);
    recovery.records_lost = length - present;
    recovery.reason = Some(format!("the record table ends after {present} of {length} entries"));
    Ok(())
}

/// Takes the presence lock exclusively. Readers that try to open meanwhile hold it for a moment each, until they have
/// seen the journal.
fn wait_alone(directory: &dyn Directory, presence: &dyn LockGuard) -> Result<()> {
    for _ in 0..100 {
        let alone = presence.upgrade();
        if alone.map_err(|error| Error::io("lock the store for itself", directory.path(), error))? {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(Error::new(
        ErrorKind::Locked,
        "an interrupted delete or compact waits until readers have closed the store",
    )
    .at_path(directory.path()))
}

/// A fault that is the operating system's.
fn unreadable(store: &Store, fault: &Fault) -> Error {
    let error = Error::new(ErrorKind::Io, format!("a record could not be read: {}", fault.detail));
    match fault.record {
        Some(record) => error.at_path(store.file(&fault.file)).for_record(record),
        None => error.at_path(store.file(&fault.file)),
    }
}

impl Store {
    /// What opening for writing had to put right; `None` if nothing.
    #[must_use]
    pub fn recovery(&self) -> Option<&Recovery> {
        (!self.recovery.is_nothing()).then_some(&self.recovery)
    }

    /// Looks at the records that were not synced, cuts off from the first that is damaged, and puts the frontier
    /// where no record is.
    pub(super) fn recover_unsynced(&mut self) -> Result<()> {
        let (start, strict_end, entries, current, vouched_for) = {
            let writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(checks) = &writer.checks else { return Ok(()) };
            let header = checks.header();
            let current = CheckHeader { entries: true, ..*header }.is_current(&writer.header);
            let vouched_for = header.vouches_for_frontier(&writer.header);
            (header.synced_length, header.own_until, header.entries, current, vouched_for)
        };
        let snapshot = self.snapshot();
        let length = snapshot.length();
        let end = length.min(strict_end);
        let mut recovery = std::mem::take(&mut self.recovery);
        let mut scan = Scan::new(self, Arc::clone(&snapshot));
        let mut unsynced = BTreeSet::new();
        let mut bad = None;
        for index in start..end {
            recovery.records_checked += 1;
            match scan.look(index) {
                Ok(seen) if seen.sound == Sound::Checked || !entries => {
                    unsynced.insert(seen.location.chunk);
                }
                // Every record of ours has a checksum. Where that is lost, so may be the bytes.
                Ok(_) => bad = Some((index, "its checksum is lost, and may be its bytes too".to_owned())),
                // A right record of a wrong length was not damaged by a power cut.
                Err(fault) if fault.kind == FaultKind::Schema => {}
                Err(fault) if fault.kind == FaultKind::Dictionary => {
                    return Err(wrong_dictionary(self, index, &fault));
                }
                Err(fault) if fault.kind == FaultKind::Unreadable => return Err(unreadable(self, &fault)),
                Err(fault) => bad = Some((index, fault.to_string())),
            }
            if bad.is_some() {
                break;
            }
        }
        let kept = bad.as_ref().map_or(length, |(index, _)| *index);
        let suspects = if vouched_for { start.min(kept.saturating_sub(ALWAYS_SUSPECT)) } else { 0 }..kept;
        let header = self.proven_frontier(&mut scan, snapshot.header, suspects, bad.is_some())?;
        drop(scan);
        if let Some((index, reason)) = bad {
            recovery.aside = Some(self.put_entries_aside(snapshot.header, index)?);
            recovery.truncated_at = Some(index);
            recovery.records_lost += length - index;
            recovery.reason = Some(reason);
        }
        let frontier = |header: Header| (header.tail_chunk, header.tail_offset);
        recovery.frontier_moved = frontier(header) != frontier(snapshot.header);
        self.recovery = recovery;
        if !current && entries {
            self.forget_foreign_checks(&snapshot, kept)?;
        }
        let mut writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = header != writer.header;
        writer.move_frontier(header)?;
        if changed || start < end {
            // So that the next opening need not look again.
            for chunk in unsynced {
                writer.chunk(chunk)?;
            }
            writer.sync()?;
        }
        drop(writer);
        if changed { self.reset_snapshot(header) } else { Ok(()) }
    }

    /// Clears checksums of records that another program has moved or replaced, durably: once the checks are current again,
    /// one that does not fit is damage.
    pub(super) fn forget_foreign_checks(&self, snapshot: &Snapshot, length: u64) -> Result<()> {
        let writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(checks) = &writer.checks else { return Ok(()) };
        let mut cleared = false;
        for index in 0..length.min(self.written(snapshot)?) {
            // An impossible entry is for verify() to name; its checksum stays, so that it does not pass for a foreign one.
            if let Ok((location, check)) = self.entry_of(snapshot, index)
                && check.tag != 0
                && check.for_location(&location).is_none()
            {
                checks.write_entries(index, &[CheckEntry::default()])?;
                cleared = true;
            }
        }
        if cleared { checks.sync() } else { Ok(()) }
    }

    /// Keeps the table entries from `first` on in a file of their own; gives its name.
    pub(super) fn put_entries_aside(&self, header: Header, first: u64) -> Result<String> {
        let name = self.unused_name("lost", "zr")?;
        let snapshot = self.snapshot();
        let write = || {
            let file = self.directory.open(&name, Access::Create)?;
            file.write_all_at(&header.encode(), 0)?;
            let mut at = HEADER_BYTES as u64;
            let end = header.table_end();
            let mut from = table_offset(first);
            let mut buffer = vec![0; LOCATION_BYTES << 12];
            while from < end {
                let length = usize::try_from(end - from).map_or(buffer.len(), |left| left.min(buffer.len()));
                let piece = buffer.get_mut(..length).unwrap_or_default();
                snapshot.table.read_exact(piece, from)?;
                file.write_all_at(piece, at)?;
                at += length as u64;
                from += length as u64;
            }
            file.sync()?;
            self.directory.sync()
        };
        write().map_err(|error| Error::io("put lost table entries aside", self.file(&name), error))?;
        Ok(name)
    }

    /// A file name `STEM-N.ENDING` that is not taken.
    pub(super) fn unused_name(&self, stem: &str, ending: &str) -> Result<String> {
        let listed = self
            .directory
            .names()
            .map_err(|error| Error::io("list the store's directory", &self.path, error))?;
        let mut number = 0_u32;
        loop {
            let name = format!("{stem}-{number}.{ending}");
            if !listed.contains(&name) {
                return Ok(name);
            }
            number += 1;
        }
    }
}
