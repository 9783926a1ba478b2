//! Repair: what is sound stays, what is not is put aside, nothing goes without a trace.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::frontier::Lost;
use super::scan::{Fault, FaultKind, Scan, Sound, wrong_dictionary};
use super::snapshot::{Snapshot, written_entries};
use super::verify::{LISTED, Range, overlaps};
use super::{OpenOptions, Recovery, Store, journal, names, open, region};
use crate::error::{Error, Result};
use crate::format::check::CheckEntry;
use crate::format::{HEADER_BYTES, Header, LOCATION_BYTES, table_offset};
use crate::io::{Access, Directory, Disk};

/// Bytes of damaged records are collected up to this many, then written.
const PIECE_BYTES: usize = 64 << 10;

/// What [`repair`] has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Records that are left, all of them sound.
    pub records: u64,
    /// Records whose entries the cut-off record table no longer held.
    pub entries_lost: u64,
    /// The indices that damaged records had; the last records have taken their places, as in a delete.
    pub removed: Vec<u64>,
    /// What was wrong with them; the first 10,000 faults.
    pub faults: Vec<Fault>,
    /// The files with what was put aside, within the store's directory.
    pub aside: Vec<String>,
    /// Sound records that had no checksum and have one now.
    pub sealed: u64,
    /// The write frontier was moved to where the records end.
    pub frontier_moved: bool,
    /// What opening for writing had to put right before.
    pub recovery: Recovery,
}

impl RepairReport {
    fn push(&mut self, fault: Fault) {
        if self.faults.len() < LISTED {
            self.faults.push(fault);
        }
    }
}

/// Makes the store in `path` sound again as far as it can be.
///
/// Damaged records are taken out like deleted ones, the last records filling their places. Their table entries go to a
/// file `lost-N.zr` and what could be read of their stored bytes to `lost-N.bin` in the store's directory: for each
/// its index (u64), the number of bytes (u64), and the bytes. Entries at the end of a version 3 table that were never
/// written (all zeros, as in a hole) are cut off. Sound records without a checksum get one.
///
/// # Errors
///
/// When there is no store, its header is not one, the dictionary or the schema does not fit (put the right file back),
/// another handle has the store open, or a file cannot be read or written.
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    repair_in(Arc::new(Disk::new(path.as_ref())))
}

/// As [`repair`], in a directory of any kind.
///
/// # Errors
///
/// As [`repair`].
pub fn repair_in(directory: Arc<dyn Directory>) -> Result<RepairReport> {
    let mut report = RepairReport::default();
    if let Err(error) = directory.open(names::META, Access::Write) {
        return Err(open::cannot_open(directory.as_ref(), error));
    }
    let lock = open::lock_writer(directory.as_ref())?;
    let header = cut_header(directory.as_ref(), &mut report)?;
    set_foreign_journal_aside(directory.as_ref(), header, &mut report)?;
    let mut store = OpenOptions::new().writable(true).open_locked(directory, Some(lock), true)?;
    report.recovery = store.recovery.clone();
    // First, as what comes then vouches for it.
    store.fix_frontier(&mut report)?;
    store.take_out_damaged(&mut report)?;
    store.seal(&mut report)?;
    store.sync()?;
    report.records = store.len();
    Ok(report)
}

/// Makes the header count only entries that the table still has.
fn cut_header(directory: &dyn Directory, report: &mut RepairReport) -> Result<Header> {
    let path = directory.path().join(names::META);
    let failed = |error| Error::io("repair the header", &path, error);
    let meta = directory.open(names::META, Access::Write).map_err(failed)?;
    let size = meta.size().map_err(failed)?;
    if size < HEADER_BYTES as u64 {
        return Err(Error::corrupt(format!("meta.zr has {size} bytes, its header alone has {HEADER_BYTES}"))
            .at_path(&path)
            .with_hint("restore it from a copy; without it the chunks cannot be divided into records"));
    }
    let words = region::header_words(meta.as_ref()).map_err(failed)?;
    let mut header = Header::from_words(words).map_err(|error| error.at_path(&path))?;
    let mut present = (size - HEADER_BYTES as u64) / LOCATION_BYTES as u64;
    let read = |piece: &mut [u8], offset| meta.read_exact_at(piece, offset);
    present = written_entries(header.version, present.min(u64::from(header.length)), read).map_err(failed)?;
    if present < u64::from(header.length) {
        report.entries_lost = u64::from(header.length) - present;
        header.length = u32::try_from(present).unwrap_or(header.length);
        meta.store_u64(8, header.words()[1]).map_err(failed)?;
        meta.sync().map_err(failed)?;
    }
    Ok(header)
}

/// A journal that is whole and impossible is kept for whoever wants to look at it.
fn set_foreign_journal_aside(
    directory: &dyn Directory,
    header: Header,
    report: &mut RepairReport,
) -> Result<()> {
    match journal::read(directory, header) {
        Err(error) if error.is_corrupt() => {
            let name = "journal-refused.zr".to_owned();
            directory
                .rename(names::JOURNAL, &name)
                .and_then(|()| directory.sync())
                .map_err(|error| Error::io("set the journal aside", directory.path().join(&name), error))?;
            report.push(Fault::of_file(FaultKind::Journal, names::JOURNAL, error.message()));
            report.aside.push(name);
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

impl Store {
    /// Finds damaged records, keeps what there is of them, and deletes them.
    fn take_out_damaged(&mut self, report: &mut RepairReport) -> Result<()> {
        let snapshot = self.refresh()?;
        let mut scan = Scan::new(self, Arc::clone(&snapshot));
        let (mut ranges, mut unchecked) = (Vec::new(), Vec::new());
        for index in 0..snapshot.length() {
            match scan.look(index) {
                Ok(seen) => {
                    let location = seen.location;
                    if seen.sound == Sound::Unchecked {
                        unchecked.push(index);
                    }
                    if location.stored_length > 0 {
                        let (chunk, offset, length) =
                            (location.chunk, location.offset, location.stored_length);
                        ranges.push(Range { chunk, offset, length, index });
                    }
                }
                // Right bytes of a wrong length are not damage.
                Err(fault) if fault.kind == FaultKind::Schema => report.push(*fault),
                Err(fault) if fault.kind == FaultKind::Dictionary => {
                    return Err(wrong_dictionary(self, index, &fault));
                }
                Err(fault) => {
                    report.removed.push(index);
                    report.push(*fault);
                }
            }
        }
        let mut intruders = BTreeSet::new();
        for (first, second) in overlaps(&mut ranges) {
            for record in [first, second] {
                // A checksum that fits proves the one, so the other is the intruder.
                if unchecked.binary_search(&record.index).is_ok() && intruders.insert(record.index) {
                    let mut fault = Fault::of_file(
                        FaultKind::Overlap,
                        &names::chunk(record.chunk),
                        "it shares bytes with another record",
                    );
                    fault.record = Some(record.index);
                    report.push(fault);
                }
            }
        }
        report.removed.extend(intruders);
        if !snapshot.check_header.is_some_and(|header| header.is_current(&snapshot.header)) {
            // The next sync may make the checks current, and what does not fit would be damage from then on.
            self.forget_foreign_checks(&snapshot, snapshot.length())?;
        }
        if report.removed.is_empty() {
            return Ok(());
        }
        report.removed.sort_unstable();
        self.put_records_aside(&snapshot, &mut scan, report)?;
        drop(scan);
        let removed = report.removed.clone();
        self.delete(&removed)?;
        Ok(())
    }

    /// Writes the table entries and what can be read of the stored bytes of the removed records to files of their own.
    fn put_records_aside(
        &self,
        snapshot: &Snapshot,
        scan: &mut Scan<'_>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let name = self.unused_name("lost", "zr")?;
        let bytes_name = name.replace(".zr", ".bin");
        let mut entries = snapshot.header.encode().to_vec();
        for &index in &report.removed {
            let entry = snapshot.entry(index);
            entries.extend(
                entry.map_err(|error| Error::io("read the record table", self.file(names::META), error))?,
            );
        }
        // Entries may name the same bytes any number of times; no more is kept than the chunks hold.
        let mut room: u64 = self.chunk_sizes()?.iter().map(|(_, size)| size).sum();
        let mut write = || {
            let file = self.directory.open(&name, Access::Create)?;
            file.write_all_at(&entries, 0)?;
            file.sync()?;
            let file = self.directory.open(&bytes_name, Access::Create)?;
            let (mut at, mut piece) = (0, Vec::new());
            for &index in &report.removed {
                scan.forget_stored();
                // It was found to be damaged before; only what can be read of it counts now.
                let _ = scan.look(index);
                let stored = Some(scan.last_stored()).filter(|stored| stored.len() as u64 <= room);
                let stored = stored.unwrap_or_default();
                room -= stored.len() as u64;
                piece.extend(index.to_le_bytes());
                piece.extend((stored.len() as u64).to_le_bytes());
                piece.extend(stored);
                if piece.len() >= PIECE_BYTES {
                    file.write_all_at(&piece, at)?;
                    at += piece.len() as u64;
                    piece.clear();
                }
            }
            file.write_all_at(&piece, at)?;
            file.sync()?;
            self.directory.sync()
        };
        write().map_err(|error| Error::io("put damaged records aside", self.file(&name), error))?;
        report.aside.extend([name, bytes_name]);
        Ok(())
    }

    fn fix_frontier(&mut self, report: &mut RepairReport) -> Result<()> {
        let snapshot = self.refresh()?;
        let mut scan = Scan::new(self, Arc::clone(&snapshot));
        let header = self.frontier_behind_all(&mut scan, snapshot.header, Lost::Go)?;
        drop(scan);
        if header == snapshot.header {
            return Ok(());
        }
        report.frontier_moved = true;
        let mut writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        writer.move_frontier(header)?;
        drop(writer);
        self.reset_snapshot(header)
    }

    /// Gives every sound record without a checksum one.
    fn seal(&mut self, report: &mut RepairReport) -> Result<()> {
        let snapshot = self.refresh()?;
        let mut scan = Scan::new(self, Arc::clone(&snapshot));
        for index in 0..snapshot.length() {
            let Ok(seen) = scan.look(index) else { continue };
            let Ok((_, check)) = scan.entry(index) else { continue };
            if check.for_location(&seen.location).is_some() {
                continue;
            }
            let writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(checks) = &writer.checks
                && checks.header().entries
            {
                checks.write_entries(index, &[CheckEntry::new(&seen.location, seen.crc)])?;
                report.sealed += 1;
            }
        }
        debug_assert!(table_offset(snapshot.length()) <= snapshot.table.size());
        drop(scan);
        let header = snapshot.header;
        self.reset_snapshot(header)
    }
}
