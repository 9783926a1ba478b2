use super::MAX_CHUNKS;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the header at the start of `meta.zr`.
pub const HEADER_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"ZREC";

/// Which limits a store has; the structures are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FormatVersion {
    /// Python's format: records of 1 byte to 1 MiB, at most 2^24 of them.
    #[default]
    V3,
    /// Large limits: records of 0 bytes to 2 GiB, at most 2^32 - 1 of them.
    V4,
}

impl FormatVersion {
    /// The number in the header.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }

    /// The most bytes that a record may have.
    #[must_use]
    pub const fn max_record_bytes(self) -> u64 {
        match self {
            Self::V3 => 1 << 20,
            Self::V4 => 1 << 31,
        }
    }

    /// The fewest bytes that a record may have.
    #[must_use]
    pub const fn min_record_bytes(self) -> u64 {
        match self {
            Self::V3 => 1,
            Self::V4 => 0,
        }
    }

    /// The most records that a store may have.
    #[must_use]
    pub const fn max_records(self) -> u64 {
        match self {
            Self::V3 => 1 << 24,
            Self::V4 => u32::MAX as u64,
        }
    }
}

/// The validated header: version, write frontier, number of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which limits hold.
    pub version: FormatVersion,
    /// The chunk that holds the write frontier; the chunks are `0..=tail_chunk`.
    pub tail_chunk: u16,
    /// The frontier's byte offset in that chunk.
    pub tail_offset: u32,
    /// Live records: the index space is `0..length`.
    pub length: u32,
}

impl Header {
    /// The 16 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.version.number().to_le_bytes());
        bytes[6..8].copy_from_slice(&self.tail_chunk.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.tail_offset.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads and validates the 16 bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] for a wrong magic number or a value beyond the format's limits,
    /// [`ErrorKind::Unsupported`] for an unknown version.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        let [m0, m1, m2, m3, v0, v1, c0, c1, o0, o1, o2, o3, l0, l1, l2, l3] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Error::corrupt(format!(
                "the header starts with {:02x?}, not with \"ZREC\"",
                [m0, m1, m2, m3]
            )));
        }
        let version = match u16::from_le_bytes([v0, v1]) {
            3 => FormatVersion::V3,
            4 => FormatVersion::V4,
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("the store has format version {other}; this build reads versions 3 and 4"),
                ));
            }
        };
        let header = Self {
            version,
            tail_chunk: u16::from_le_bytes([c0, c1]),
            tail_offset: u32::from_le_bytes([o0, o1, o2, o3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        };
        if u32::from(header.tail_chunk) >= MAX_CHUNKS {
            return Err(Error::corrupt(format!(
                "the header names tail chunk {}, the last possible is {}",
                header.tail_chunk,
                MAX_CHUNKS - 1
            )));
        }
        if u64::from(header.length) > version.max_records() {
            return Err(Error::corrupt(format!(
                "the header counts {} records, the most possible is {}",
                header.length,
                version.max_records()
            )));
        }
        Ok(header)
    }
}
