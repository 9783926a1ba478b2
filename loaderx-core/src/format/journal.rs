//! `journal.zr`: what a delete or a step of a compaction is about to do, written before any of it is done.
//!
//! A 64-byte header, then one 32-byte entry for each changed record, then, where records move over bytes that are
//! still needed, the moved bytes. Doing what a journal says is idempotent: it only stores absolute values.

use super::check::{CheckEntry, ENTRY_BYTES};
use super::{HEADER_BYTES, Header, LOCATION_BYTES};
use crate::error::{Error, Result};

/// Bytes of the journal's header.
pub const JOURNAL_HEADER_BYTES: usize = 64;
/// Bytes of one entry.
pub const JOURNAL_ENTRY_BYTES: usize = 8 + LOCATION_BYTES + ENTRY_BYTES;
const MAGIC: [u8; 4] = *b"ZJNL";
const VERSION: u16 = 1;
const TRIM: u16 = 1;
const CRC_AT: usize = 60;

/// The header of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalHeader {
    /// The store's header when the journal was written.
    pub before: Header,
    /// The store's header when everything has been done.
    pub after: Header,
    /// Entries that follow.
    pub entries: u64,
    /// Bytes that follow the entries: the stored bytes of the entries' records, in the order of the entries, once for
    /// entries in a row that share a location. 0 if no record moves over bytes that are still needed.
    pub data: u64,
    /// Whether chunk files past the frontier of `after` are removed and its tail chunk is cut there.
    pub trim: bool,
    /// The CRC-32 of the header's first 60 bytes and of everything behind the header.
    pub crc: u32,
}

impl JournalHeader {
    /// The 64 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; JOURNAL_HEADER_BYTES] {
        let mut bytes = [0; JOURNAL_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(if self.trim { TRIM } else { 0 }).to_le_bytes());
        bytes[8..24].copy_from_slice(&self.before.encode());
        bytes[24..40].copy_from_slice(&self.after.encode());
        bytes[40..48].copy_from_slice(&self.entries.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.data.to_le_bytes());
        bytes[CRC_AT..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// The part of the bytes that the checksum covers.
    #[must_use]
    pub fn checked_part(bytes: &[u8; JOURNAL_HEADER_BYTES]) -> &[u8] {
        &bytes[..CRC_AT]
    }

    /// The length of the whole file; `None` if no file can be that long.
    #[must_use]
    pub fn file_bytes(&self) -> Option<u64> {
        let entries = self.entries.checked_mul(JOURNAL_ENTRY_BYTES as u64)?;
        entries.checked_add(self.data)?.checked_add(JOURNAL_HEADER_BYTES as u64)
    }

    /// Reads the 64 bytes. The checksum is for the caller to compare, who has the rest of the file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when it is not a journal's header.
    pub fn decode(bytes: &[u8; JOURNAL_HEADER_BYTES]) -> Result<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header_at = |at: usize| {
            let mut header = [0; HEADER_BYTES];
            header.copy_from_slice(&bytes[at..at + HEADER_BYTES]);
            Header::decode(&header)
        };
        if bytes[..4] != MAGIC || u16_at(4) != VERSION {
            return Err(Error::corrupt("the journal does not start as one"));
        }
        Ok(Self {
            before: header_at(8)?,
            after: header_at(24)?,
            entries: u64_at(40),
            data: u64_at(48),
            trim: u16_at(6) & TRIM != 0,
            crc: u32_at(CRC_AT),
        })
    }
}

/// The new state of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its index.
    pub index: u64,
    /// Its new entry of the record table, as it will stand there.
    pub location: [u8; LOCATION_BYTES],
    /// Its new entry of the checks.
    pub check: CheckEntry,
}

impl JournalEntry {
    /// The 32 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; JOURNAL_ENTRY_BYTES] {
        let mut bytes = [0; JOURNAL_ENTRY_BYTES];
        bytes[0..8].copy_from_slice(&self.index.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.location);
        bytes[24..32].copy_from_slice(&self.check.encode());
        bytes
    }

    /// Reads the 32 bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; JOURNAL_ENTRY_BYTES]) -> Self {
        let mut index = [0; 8];
        let mut location = [0; LOCATION_BYTES];
        let mut check = [0; ENTRY_BYTES];
        index.copy_from_slice(&bytes[0..8]);
        location.copy_from_slice(&bytes[8..24]);
        check.copy_from_slice(&bytes[24..32]);
        Self { index: u64::from_le_bytes(index), location, check: CheckEntry::decode(&check) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FormatVersion;

    #[test]
    fn headers_and_entries_survive_their_bytes() {
        let before = Header { version: FormatVersion::V4, tail_chunk: 9, tail_offset: 8, length: 7 };
        let header = JournalHeader {
            before,
            after: Header { tail_chunk: 0, length: 5, ..before },
            entries: 2,
            data: 33,
            trim: true,
            crc: 0x0102_0304,
        };
        assert_eq!(JournalHeader::decode(&header.encode()).unwrap(), header);
        assert_eq!(header.file_bytes(), Some(64 + 64 + 33));
        assert_eq!(JournalHeader { entries: u64::MAX, ..header }.file_bytes(), None);

        let entry = JournalEntry { index: 1 << 31, location: [3; 16], check: CheckEntry { crc: 4, tag: 5 } };
        assert_eq!(JournalEntry::decode(&entry.encode()), entry);
    }

    #[test]
    fn what_is_not_a_journal_is_refused() {
        assert!(JournalHeader::decode(&[0; 64]).unwrap_err().is_corrupt());
        let header = Header { version: FormatVersion::V3, tail_chunk: 0, tail_offset: 0, length: 0 };
        let journal =
            JournalHeader { before: header, after: header, entries: 0, data: 0, trim: false, crc: 0 };
        for at in [0, 4, 8, 24] {
            let mut bytes = journal.encode();
            bytes[at] ^= 0xff;
            assert!(JournalHeader::decode(&bytes).is_err(), "byte {at}");
        }
    }
}
