//! `check.zr`: checksums beside the data, and what was durable when.
//!
//! The file starts with two slots for the same 64-byte header. A new header goes into the slot that does not hold
//! the newest one, so a write that a crash cuts in half leaves the older header whole. Behind the slots lies, for each
//! index, the checksum of the stored bytes together with a tag of the location it was computed for. Whoever moves
//! or replaces a record without knowing this file (the Python package) leaves a tag that does not fit, and
//! the record counts as unchecked.

use super::{Compression, Header, Location};
use crate::error::{Error, Result};

/// Bytes of one header slot.
pub const SLOT_BYTES: usize = 64;
/// Bytes of one entry.
pub const ENTRY_BYTES: usize = 8;
const SLOTS_END: u64 = 2 * SLOT_BYTES as u64;
const MAGIC: [u8; 4] = *b"ZCHK";
const VERSION: u16 = 1;
const NO_ENTRIES: u16 = 1;
/// No writer counts this far, so the next sequence always exists.
const MAX_SEQUENCE: u64 = u64::MAX / 2;

/// Where the entry of record `index` lies in `check.zr`.
#[must_use]
pub const fn entry_offset(index: u64) -> u64 {
    SLOTS_END + index * ENTRY_BYTES as u64
}

/// Which dictionary the records of a store were compressed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DictionaryIdentity {
    /// zstd's dictionary id; 0 where there is no dictionary, or one without an id.
    pub id: u32,
    /// Its bytes; 0 where there is no dictionary.
    pub length: u32,
    /// The CRC-32 of its bytes.
    pub crc: u32,
}

/// How appends are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendCodec {
    /// The codec.
    pub compression: Compression,
    /// zstd's compression level.
    pub level: i32,
    /// Whether zstd leaves literals as they are.
    pub raw_literals: bool,
}

/// The header of `check.zr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckHeader {
    /// Counts the headers written; the valid slot with the higher number is the one that holds.
    pub sequence: u64,
    /// Every record below this index was durable when the header was written.
    pub synced_length: u64,
    /// Records at or above this index were not appended by a writer that keeps this file. While such a writer is at
    /// work it is `u64::MAX`.
    pub own_until: u64,
    /// The dictionary of the store.
    pub dictionary: DictionaryIdentity,
    /// How appends are stored, where a writer has said so.
    pub codec: Option<AppendCodec>,
    /// Whether checksums are kept for appended records.
    pub entries: bool,
    /// The chunk and the offset of the write frontier when the header was written.
    pub frontier: (u16, u32),
}

impl CheckHeader {
    /// The frontier in a header that was made for a store without one: nothing has been held against it yet.
    pub const NO_FRONTIER: (u16, u32) = (u16::MAX, u32::MAX);

    /// The 64 bytes of a slot.
    #[must_use]
    pub fn encode(&self) -> [u8; SLOT_BYTES] {
        let (codec, literals, level) = match self.codec {
            None => (0, 0, 0),
            Some(codec) => {
                (u16::from(codec.compression.number()) + 1, u16::from(codec.raw_literals), codec.level)
            }
        };
        let mut bytes = [0; SLOT_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(if self.entries { 0 } else { NO_ENTRIES }).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced_length.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.own_until.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.dictionary.id.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.dictionary.length.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.dictionary.crc.to_le_bytes());
        bytes[44..46].copy_from_slice(&codec.to_le_bytes());
        bytes[46..48].copy_from_slice(&literals.to_le_bytes());
        bytes[48..52].copy_from_slice(&level.to_le_bytes());
        bytes[52..54].copy_from_slice(&self.frontier.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.frontier.1.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads one slot.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when it is not a header, was cut in half or is of another
    /// version.
    pub fn decode(bytes: &[u8; SLOT_BYTES]) -> Result<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..4] != MAGIC || u32_at(60) != crc32fast::hash(&bytes[..60]) {
            return Err(Error::corrupt("a header slot of the checks is damaged"));
        }
        if u16_at(4) != VERSION {
            return Err(Error::corrupt(format!(
                "the checks have version {}; this build reads {VERSION}",
                u16_at(4)
            )));
        }
        if u64_at(8) > MAX_SEQUENCE {
            return Err(Error::corrupt(format!(
                "the checks were written {} times, which no writer does",
                u64_at(8)
            )));
        }
        let compression = match u16_at(44) {
            1 => Some(Compression::Raw),
            2 => Some(Compression::Zstd),
            3 => Some(Compression::ZstdDict),
            _ => None,
        };
        let codec = compression.map(|compression| AppendCodec {
            compression,
            level: i32::from_le_bytes([bytes[48], bytes[49], bytes[50], bytes[51]]),
            raw_literals: u16_at(46) == 1,
        });
        Ok(Self {
            sequence: u64_at(8),
            synced_length: u64_at(16),
            own_until: u64_at(24),
            dictionary: DictionaryIdentity { id: u32_at(32), length: u32_at(36), crc: u32_at(40) },
            codec,
            entries: u16_at(6) & NO_ENTRIES == 0,
            frontier: (u16_at(52), u32_at(56)),
        })
    }

    /// Reads both slots and gives the newer valid header.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when neither is valid.
    pub fn newest(slots: &[u8; 2 * SLOT_BYTES]) -> Result<Self> {
        let (slots, _) = slots.as_chunks::<SLOT_BYTES>();
        let mut newest: Result<Self> = Err(Error::corrupt("there is no header in the checks"));
        for slot in slots {
            match (Self::decode(slot), &newest) {
                (Ok(header), Ok(other)) if header.sequence <= other.sequence => {}
                (Ok(header), _) => newest = Ok(header),
                (Err(error), Err(_)) => newest = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
        newest
    }

    /// Whether the store, whose header is `header`, is as a writer that keeps this file has left it, or is leaving it.
    ///
    /// After another program has changed it, entries that fit no record are to be expected; before, they are damage. (A
    /// program that deletes, compacts and appends until length and frontier are the old ones goes unnoticed.)
    #[must_use]
    pub fn is_current(&self, header: &Header) -> bool {
        self.entries
            && (self.own_until == u64::MAX
                || (self.own_until == u64::from(header.length)
                    && self.frontier == (header.tail_chunk, header.tail_offset)))
    }

    /// Whether the frontier of `header` needs no proof by every record: it is the one that the last writer left, or one
    /// that a writer at work has come to since it last synced.
    #[must_use]
    pub fn vouches_for_frontier(&self, header: &Header) -> bool {
        Self { entries: true, ..*self }.is_current(header)
            && (header.tail_chunk, header.tail_offset) >= self.frontier
    }

    /// Why `header` cannot be the store's, if so: everything was durable and left in order, and no program that appends
    /// or deletes gets from there to here.
    #[must_use]
    pub fn contradicts(&self, header: &Header) -> Option<String> {
        if self.own_until != self.synced_length {
            return None;
        }
        let (length, frontier) = (u64::from(header.length), (header.tail_chunk, header.tail_offset));
        // Every append moves the frontier, and ours say first that a writer is at work.
        let impossible = length > self.own_until && frontier == self.frontier;
        impossible.then(|| {
            format!(
                "the header says {length} records and a frontier at byte {} of chunk {}; they were left as {} records \
                 and byte {} of chunk {}",
                frontier.1, frontier.0, self.own_until, self.frontier.1, self.frontier.0
            )
        })
    }

    /// Where the slot of this header lies.
    #[must_use]
    pub const fn slot_offset(&self) -> u64 {
        (self.sequence % 2) * SLOT_BYTES as u64
    }
}

/// The checksum of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckEntry {
    /// The CRC-32 of the stored bytes.
    pub crc: u32,
    /// [`Location::tag`] of the location it was computed for; 0 where there is none.
    pub tag: u32,
}

impl CheckEntry {
    /// The entry for a record.
    #[must_use]
    pub fn new(location: &Location, crc: u32) -> Self {
        Self { crc, tag: location.tag() }
    }

    /// The checksum that the record at `location` must have; `None` if this entry is not about that location.
    #[must_use]
    pub fn for_location(&self, location: &Location) -> Option<u32> {
        (self.tag == location.tag()).then_some(self.crc)
    }

    /// The 8 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let [c0, c1, c2, c3] = self.crc.to_le_bytes();
        let [t0, t1, t2, t3] = self.tag.to_le_bytes();
        [c0, c1, c2, c3, t0, t1, t2, t3]
    }

    /// Reads the 8 bytes; every value is possible.
    #[must_use]
    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let [c0, c1, c2, c3, t0, t1, t2, t3] = *bytes;
        Self { crc: u32::from_le_bytes([c0, c1, c2, c3]), tag: u32::from_le_bytes([t0, t1, t2, t3]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u64) -> CheckHeader {
        CheckHeader {
            sequence,
            synced_length: 7,
            own_until: u64::MAX,
            dictionary: DictionaryIdentity { id: 1, length: 2, crc: 3 },
            codec: Some(AppendCodec { compression: Compression::ZstdDict, level: -5, raw_literals: true }),
            entries: true,
            frontier: (7, 8),
        }
    }

    #[test]
    fn headers_survive_their_bytes_and_every_flipped_bit_is_found() {
        let codec = |compression, level, raw_literals| Some(AppendCodec { compression, level, raw_literals });
        for codec in [
            None,
            codec(Compression::Raw, 0, false),
            codec(Compression::Zstd, 3, true),
            codec(Compression::ZstdDict, -5, false),
        ] {
            for entries in [false, true] {
                let header = CheckHeader { codec, entries, ..header(9) };
                assert_eq!(CheckHeader::decode(&header.encode()).unwrap(), header);
            }
        }
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = header(9).encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(CheckHeader::decode(&bytes).unwrap_err().is_corrupt(), "bit {bit}");
        }
    }

    #[test]
    fn a_sequence_without_a_next_one_is_refused() {
        assert!(CheckHeader::decode(&header(MAX_SEQUENCE).encode()).is_ok());
        assert!(CheckHeader::decode(&header(MAX_SEQUENCE + 1).encode()).unwrap_err().is_corrupt());
        assert!(CheckHeader::decode(&header(u64::MAX).encode()).unwrap_err().is_corrupt());
    }

    #[test]
    fn the_newer_whole_header_holds() {
        let slots = |first: &[u8; 64], second: &[u8; 64]| {
            let mut bytes = [0; 128];
            bytes[..64].copy_from_slice(first);
            bytes[64..].copy_from_slice(second);
            CheckHeader::newest(&bytes)
        };
        let (old, new) = (header(4).encode(), header(5).encode());
        assert_eq!(slots(&old, &new).unwrap().sequence, 5);
        assert_eq!(slots(&new, &old).unwrap().sequence, 5);
        let mut torn = header(6).encode();
        torn[32..].fill(0);
        assert_eq!(slots(&torn, &new).unwrap().sequence, 5);
        assert_eq!(slots(&old, &torn).unwrap().sequence, 4);
        assert!(slots(&torn, &torn).unwrap_err().is_corrupt());
        assert!(slots(&[0; 64], &[0; 64]).unwrap_err().is_corrupt());
        assert_eq!(header(5).slot_offset(), 64);
    }
}
