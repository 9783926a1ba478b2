//! Verify: everything is looked at, nothing is changed, every fault is listed.

use std::sync::Arc;

use super::scan::{Fault, FaultKind, Scan, Sound};
use super::{Store, checks, journal, names};
use crate::error::Result;
use crate::format::table_offset;

/// Faults that a report lists; more are only counted.
pub(super) const LISTED: usize = 10_000;

/// What [`Store::verify`] has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Records looked at: all.
    pub records: u64,
    /// Records that a checksum, of the store or of their frame, speaks for.
    pub checked: u64,
    /// Records in their place whose bytes nothing speaks for: raw ones that the Python package has written, moved or
    /// replaced.
    pub unchecked: u64,
    /// Stored bytes read.
    pub bytes: u64,
    /// What is wrong, in the order of the records; the first 10,000.
    pub faults: Vec<Fault>,
    /// How many things are wrong in all.
    pub fault_count: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    pub(super) fn push(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < LISTED {
            self.faults.push(fault);
        }
    }
}

impl Store {
    /// Reads every record, compares checksums, decodes frames, looks for overlaps, and lists all faults.
    ///
    /// # Errors
    ///
    /// When the header or the record table cannot be read any more. Damage is not an error but a line of the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        let snapshot = self.refresh()?;
        let mut report = VerifyReport { records: snapshot.length(), ..VerifyReport::default() };
        if let Err(error) = checks::read_header(self.directory.as_ref()) {
            report.push(Fault::of_file(FaultKind::Checks, names::CHECKS, error.message()));
        }
        match journal::read(self.directory.as_ref(), snapshot.header) {
            Ok(journal::Found::Nothing | journal::Found::Valid(_)) => {}
            Ok(journal::Found::Void) => report.push(Fault::of_file(
                FaultKind::Journal,
                names::JOURNAL,
                "it is incomplete or of another state of the store, so no record needs it; opening for writing removes it",
            )),
            Err(error) => report.push(Fault::of_file(FaultKind::Journal, names::JOURNAL, error.message())),
        }
        let frontier = (snapshot.header.tail_chunk, u64::from(snapshot.header.tail_offset));
        let mut scan = Scan::new(self, Arc::clone(&snapshot));
        let mut ranges = Vec::new();
        let written = self.written(&snapshot)?;
        for index in 0..written {
            match scan.look(index) {
                Ok(seen) => {
                    match seen.sound {
                        Sound::Checked => report.checked += 1,
                        Sound::Unchecked => report.unchecked += 1,
                    }
                    let location = seen.location;
                    report.bytes += u64::from(location.stored_length);
                    if (location.chunk, location.end()) > frontier {
                        report.push(past_frontier(index, location.chunk, location.end(), frontier));
                    }
                    if location.stored_length > 0 {
                        ranges.push(Range {
                            chunk: location.chunk,
                            offset: location.offset,
                            length: location.stored_length,
                            index,
                        });
                    }
                }
                Err(fault) => report.push(*fault),
            }
        }
        if written < snapshot.length() {
            report.push(never_written(written, snapshot.length()));
        }
        for (first, second) in overlaps(&mut ranges) {
            let mut fault = Fault::of_file(
                FaultKind::Overlap,
                &names::chunk(second.chunk),
                format!("its bytes begin within those of record {}", first.index),
            );
            fault.chunk = Some(u32::from(second.chunk));
            fault.record = Some(second.index);
            fault.offset = Some(u64::from(second.offset));
            report.push(fault);
        }
        Ok(report)
    }
}

/// One fault for all of them: a header that has lost a bit may count millions.
fn never_written(first: u64, length: u64) -> Fault {
    let detail =
        format!("the entries from here to {} were never written, and the header counts them", length - 1);
    let mut fault = Fault::of_file(FaultKind::Entry, names::META, detail);
    fault.record = Some(first);
    fault.offset = Some(table_offset(first));
    fault
}

fn past_frontier(index: u64, chunk: u16, end: u64, frontier: (u16, u64)) -> Fault {
    let mut fault = Fault::of_file(
        FaultKind::PastFrontier,
        &names::chunk(chunk),
        format!(
            "it ends at byte {end}; the next append would write at byte {} of chunk {}",
            frontier.1, frontier.0
        ),
    );
    fault.chunk = Some(u32::from(chunk));
    fault.record = Some(index);
    fault
}

/// The stored bytes of one record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) chunk: u16,
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) index: u64,
}

/// Sorts ranges by place and gives the pairs of neighbours that overlap without being the same.
pub(super) fn overlaps(ranges: &mut [Range]) -> Vec<(Range, Range)> {
    ranges.sort_unstable_by_key(|range| (range.chunk, range.offset, range.length, range.index));
    let mut found = Vec::new();
    let mut widest: Option<Range> = None;
    for &range in ranges.iter() {
        if let Some(before) = widest
            && before.chunk == range.chunk
            && u64::from(before.offset) + u64::from(before.length) > u64::from(range.offset)
        {
            // Two entries for the same bytes are two records, as an interrupted delete of the Python package leaves them.
            if (before.offset, before.length) != (range.offset, range.length) {
                found.push((before, range));
            }
            let end = |range: &Range| u64::from(range.offset) + u64::from(range.length);
            if end(&range) <= end(&before) {
                continue;
            }
        }
        widest = Some(range);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_found_and_equal_ones_are_not() {
        let range = |chunk, offset, length, index| Range { chunk, offset, length, index };
        let mut ranges = vec![
            range(0, 100, 10, 0),
            range(0, 110, 10, 1),
            range(0, 119, 10, 2),
            range(1, 119, 10, 3),
            range(0, 0, 50, 4),
            range(0, 0, 50, 5),
            range(0, 10, 5, 6),
            range(0, 40, 20, 7),
        ];
        let pairs: Vec<_> =
            overlaps(&mut ranges).iter().map(|(first, second)| (first.index, second.index)).collect();
        assert_eq!(pairs, [(4, 6), (4, 7), (1, 2)]);
    }
}
