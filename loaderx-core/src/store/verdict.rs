//! What the checks say about a record's stored bytes.

use super::snapshot::Snapshot;
use crate::format::Location;
use crate::format::check::CheckEntry;

/// The answer of an entry of `check.zr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// These are the bytes that were appended.
    Sound,
    /// Nothing can be said: another program wrote, moved or replaced the record, or no checksums are kept.
    Unknown,
    /// They are not, or the record's table entry is not, and why.
    Damaged(&'static str),
}

impl Snapshot {
    /// Judges stored bytes whose CRC-32 is `crc`, found at `location` as record `index`.
    pub(super) fn judge(&self, index: u64, location: &Location, check: CheckEntry, crc: u32) -> Verdict {
        if let Some(expected) = check.for_location(location) {
            return if expected == crc {
                Verdict::Sound
            } else {
                Verdict::Damaged("the stored bytes do not match their checksum")
            };
        }
        // Moved as a whole, by a compaction that does not know the checks.
        if check.tag != 0 && check.crc == crc {
            return Verdict::Sound;
        }
        let Some(header) = self.check_header.filter(|header| header.is_current(&self.header)) else {
            return Verdict::Unknown;
        };
        if check.tag != 0 {
            Verdict::Damaged("the record's table entry is not the one that its checksum was made with")
        } else if header.own_until == u64::MAX && index >= header.synced_length {
            Verdict::Damaged("the checksum of an append that was not synced is missing")
        } else {
            Verdict::Unknown
        }
    }
}
