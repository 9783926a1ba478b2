use std::ops::RangeInclusive;

use super::FormatVersion;
use crate::error::{Error, Result};

/// Bytes of one entry of the record table.
pub const LOCATION_BYTES: usize = 16;

/// A zstd block takes at least 4 bytes and decodes to at most 128 KiB.
const BLOCK_STORED_BYTES: u64 = 4;
const BLOCK_DECODED_BYTES: u64 = 128 << 10;

/// How the stored bytes of a record were made from its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As they are.
    Raw,
    /// One zstd frame.
    Zstd,
    /// One zstd frame that needs the store's dictionary.
    ZstdDict,
}

impl Compression {
    /// The number in the table.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
            Self::ZstdDict => 2,
        }
    }
}

/// Where a record lies and how it is stored: one validated entry of the record table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Byte offset in the chunk.
    pub offset: u32,
    /// Bytes in the chunk.
    pub stored_length: u32,
    /// Bytes of the record's content.
    pub decoded_length: u32,
    /// The chunk file.
    pub chunk: u16,
    /// How to decode.
    pub compression: Compression,
}

impl Location {
    /// One past the last stored byte, within the chunk.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset as u64 + self.stored_length as u64
    }

    /// The 16 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; LOCATION_BYTES] {
        let mut bytes = [0; LOCATION_BYTES];
        bytes[0..4].copy_from_slice(&self.offset.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stored_length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.decoded_length.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.chunk.to_le_bytes());
        bytes[14] = self.compression.number();
        bytes
    }

    /// Tells apart, in 32 bits, the location that a checksum was computed for; never 0.
    #[must_use]
    pub fn tag(&self) -> u32 {
        crc32fast::hash(&self.encode()).max(1)
    }

    /// Reads and validates the 16 bytes; the chunk's own length is checked where it is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for an unknown codec, lengths outside the limits, or a content
    /// that is longer than any frame of the stored length holds.
    #[inline]
    pub fn decode(bytes: &[u8; LOCATION_BYTES], version: FormatVersion) -> Result<Self> {
        let [o0, o1, o2, o3, p0, p1, p2, p3, l0, l1, l2, l3, c0, c1, codec, _reserved] = *bytes;
        let compression = match codec {
            0 => Compression::Raw,
            1 => Compression::Zstd,
            2 => Compression::ZstdDict,
            other => return Err(unknown_codec(other)),
        };
        let decoded_length = u32::from_le_bytes([l0, l1, l2, l3]);
        // Python ignores the stored length of raw records.
        let stored_length = if compression == Compression::Raw {
            decoded_length
        } else {
            u32::from_le_bytes([p0, p1, p2, p3])
        };
        let limits = version.min_record_bytes()..=version.max_record_bytes();
        if !limits.contains(&u64::from(decoded_length)) || stored_length > decoded_length {
            return Err(impossible_length(stored_length, decoded_length, &limits));
        }
        if compression != Compression::Raw && u64::from(decoded_length) > most_decoded(stored_length) {
            return Err(impossible_frame(stored_length, decoded_length));
        }
        Ok(Self {
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
            stored_length,
            decoded_length,
            chunk: u16::from_le_bytes([c0, c1]),
            compression,
        })
    }

    /// Refuses a chunk that the format does not have. Readers need not ask: they hold the chunk against the store's
    /// last one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for such a chunk.
    pub fn within_chunks(self, version: FormatVersion) -> Result<Self> {
        if u32::from(self.chunk) < version.max_chunks() {
            return Ok(self);
        }
        Err(Error::corrupt(format!(
            "the record table names chunk {}; the format has {} chunks",
            self.chunk,
            version.max_chunks()
        )))
    }
}

/// The most bytes that a frame of `stored` bytes can decode to.
fn most_decoded(stored: u32) -> u64 {
    u64::from(stored) / BLOCK_STORED_BYTES * BLOCK_DECODED_BYTES
}

// Every record of every gather is decoded; the texts of what is wrong with one stay out of that loop.

#[cold]
fn unknown_codec(codec: u8) -> Error {
    Error::corrupt(format!("the record table names codec {codec}; known are 0, 1 and 2"))
}

#[cold]
fn impossible_length(stored: u32, decoded: u32, limits: &RangeInclusive<u64>) -> Error {
    Error::corrupt(if limits.contains(&u64::from(decoded)) {
        format!("the record table gives a compressed record {stored} bytes for a content of {decoded}")
    } else {
        format!(
            "the record table gives a record {decoded} bytes; {} to {} are possible",
            limits.start(),
            limits.end()
        )
    })
}

#[cold]
fn impossible_frame(stored: u32, decoded: u32) -> Error {
    Error::corrupt(format!(
        "the record table gives a compressed record of {stored} bytes a content of {decoded}; a frame of that length \
         holds at most {}",
        most_decoded(stored)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: [u8; 16] = [0x11, 0, 0, 0, 0x11, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 1, 0];

    #[test]
    fn the_bytes_are_those_of_the_python_package() {
        let location = Location {
            offset: 17,
            stored_length: 17,
            decoded_length: 64,
            chunk: 0,
            compression: Compression::Zstd,
        };
        assert_eq!(location.encode(), PYTHON);
        assert_eq!(Location::decode(&PYTHON, FormatVersion::V3).unwrap(), location);
        assert_eq!(location.end(), 34);
    }

    #[test]
    fn impossible_entries_are_refused() {
        let changed = |at: usize, to: &[u8], version| {
            let mut bytes = PYTHON;
            bytes[at..at + to.len()].copy_from_slice(to);
            Location::decode(&bytes, version)
        };
        let v3 = FormatVersion::V3;
        assert!(changed(14, &[3], v3).unwrap_err().is_corrupt());
        assert!(changed(8, &0_u32.to_le_bytes(), v3).unwrap_err().is_corrupt());
        assert!(changed(8, &((1_u32 << 20) + 1).to_le_bytes(), v3).unwrap_err().is_corrupt());
        let large = |stored: u64| stored | ((1 << 20) + 1) << 32;
        assert!(changed(4, &large(36).to_le_bytes(), FormatVersion::V4).is_ok());
        assert!(changed(4, &u32::MAX.to_le_bytes(), v3).unwrap_err().is_corrupt());
        // 17 stored bytes are at most 4 blocks.
        let blocks = |count: u32| changed(8, &(count * (128 << 10)).to_le_bytes(), v3);
        assert!(blocks(4).is_ok());
        assert!(blocks(5).unwrap_err().is_corrupt());
        // Python ignores the stored length of raw records, and the reserved byte.
        let raw = changed(14, &[0, 9], v3).unwrap();
        assert_eq!((raw.stored_length, raw.decoded_length), (64, 64));
    }

    #[test]
    fn the_tag_follows_every_field() {
        let location = Location::decode(&PYTHON, FormatVersion::V3).unwrap();
        let others = [
            Location { offset: 18, ..location },
            Location { stored_length: 18, ..location },
            Location { decoded_length: 65, ..location },
            Location { chunk: 1, ..location },
            Location { compression: Compression::ZstdDict, ..location },
        ];
        assert!(others.iter().all(|other| other.tag() != location.tag()));
    }

    #[test]
    fn the_tag_of_a_location_whose_checksum_is_0_still_is_a_tag() {
        // 0 in an entry of the checks says that there is no checksum.
        let location =
            Location { offset: 686_242_634, ..Location::decode(&PYTHON, FormatVersion::V3).unwrap() };
        assert_eq!(crc32fast::hash(&location.encode()), 0);
        assert_eq!(location.tag(), 1);
    }
}
