use super::FormatVersion;
use crate::error::{Error, Result};

/// Bytes of one entry of the record table.
pub const LOCATION_BYTES: usize = 16;

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

    /// Reads and validates the 16 bytes; the chunk's own length is checked where it is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for an unknown codec or lengths outside the limits.
    pub fn decode(bytes: &[u8; LOCATION_BYTES], version: FormatVersion) -> Result<Self> {
        let [o0, o1, o2, o3, p0, p1, p2, p3, l0, l1, l2, l3, c0, c1, codec, _reserved] = *bytes;
        let compression = match codec {
            0 => Compression::Raw,
            1 => Compression::Zstd,
            2 => Compression::ZstdDict,
            other => {
                return Err(Error::corrupt(format!(
                    "the record table names codec {other}; known are 0, 1 and 2"
                )));
            }
        };
        let decoded_length = u32::from_le_bytes([l0, l1, l2, l3]);
        // Python ignores the stored length of raw records.
        let stored_length = if compression == Compression::Raw {
            decoded_length
        } else {
            u32::from_le_bytes([p0, p1, p2, p3])
        };
        let limits = version.min_record_bytes()..=version.max_record_bytes();
        if !limits.contains(&u64::from(decoded_length)) {
            return Err(Error::corrupt(format!(
                "the record table gives a record {decoded_length} bytes; {} to {} are possible",
                limits.start(),
                limits.end()
            )));
        }
        if stored_length > decoded_length {
            return Err(Error::corrupt(format!(
                "the record table gives a compressed record {stored_length} bytes for a content of {decoded_length}"
            )));
        }
        Ok(Self {
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
            stored_length,
            decoded_length,
            chunk: u16::from_le_bytes([c0, c1]),
            compression,
        })
    }
}
