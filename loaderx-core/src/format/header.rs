use crate::error::{Error, ErrorKind, Result};

/// Bytes of the header at the start of `meta.zr`.
pub const HEADER_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"ZREC";

/// Where the entry of record `index` lies in `meta.zr`.
#[must_use]
pub const fn table_offset(index: u64) -> u64 {
    HEADER_BYTES as u64 + index * super::LOCATION_BYTES as u64
}

/// Which limits a store has; the structures are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
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

    /// The most chunk files that a store may have.
    #[must_use]
    pub const fn max_chunks(self) -> u32 {
        match self {
            Self::V3 => 4096,
            Self::V4 => 1 << 16,
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

    /// The length that `meta.zr` is given where holes cost nothing; `None` where it is as long as its content.
    ///
    /// Python maps the whole table of a version 3 store without looking at the file's length: what it appends
    /// past the end of a shorter file is lost, or ends the process with SIGBUS.
    #[must_use]
    pub const fn meta_bytes(self) -> Option<u64> {
        match self {
            Self::V3 => Some(table_offset(Self::V3.max_records())),
            Self::V4 => None,
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
    /// The two halves, each of which the commit protocol stores in one piece: magic, version and tail chunk; then
    /// tail offset and length.
    #[must_use]
    pub fn words(&self) -> [u64; 2] {
        let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7] = self.encode();
        [
            u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        ]
    }

    /// Reads and validates the two halves.
    ///
    /// # Errors
    ///
    /// As [`Header::decode`].
    pub fn from_words(words: [u64; 2]) -> Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        Self::decode(&bytes)
    }

    /// The bytes of `meta.zr` that header and table need.
    #[must_use]
    pub fn table_end(&self) -> u64 {
        table_offset(u64::from(self.length))
    }

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
            ))
            .with_hint(
                "this is no store of loaderx, or its header was overwritten: restore meta.zr from a copy",
            ));
        }
        let version = match u16::from_le_bytes([v0, v1]) {
            3 => FormatVersion::V3,
            4 => FormatVersion::V4,
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("the store has format version {other}; this build reads versions 3 and 4"),
                )
                .with_hint("if a newer loaderx wrote it, read it with that one or a later one"));
            }
        };
        let header = Self {
            version,
            tail_chunk: u16::from_le_bytes([c0, c1]),
            tail_offset: u32::from_le_bytes([o0, o1, o2, o3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        };
        if u32::from(header.tail_chunk) >= version.max_chunks() {
            return Err(Error::corrupt(format!(
                "the header names tail chunk {}, the last possible is {}",
                header.tail_chunk,
                version.max_chunks() - 1
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

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: [u8; 16] = [0x5a, 0x52, 0x45, 0x43, 3, 0, 0, 0, 0x30, 0, 0, 0, 3, 0, 0, 0];

    #[test]
    fn the_bytes_are_those_of_the_python_package() {
        let header = Header { version: FormatVersion::V3, tail_chunk: 0, tail_offset: 48, length: 3 };
        assert_eq!(header.encode(), PYTHON);
        assert_eq!(Header::decode(&PYTHON).unwrap(), header);
        assert_eq!(Header::from_words(header.words()).unwrap(), header);
        assert_eq!(header.table_end(), 64);
    }

    #[test]
    fn values_beyond_the_limits_are_refused() {
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = PYTHON;
            bytes[at..at + to.len()].copy_from_slice(to);
            Header::decode(&bytes)
        };
        assert!(changed(0, b"ZREX").unwrap_err().is_corrupt());
        let error = changed(4, &[5, 0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("version 5"), "{error}");
        assert!(changed(6, &5000_u16.to_le_bytes()).unwrap_err().is_corrupt());
        assert!(changed(6, &4096_u16.to_le_bytes()).unwrap_err().is_corrupt());
        assert!(changed(6, &4095_u16.to_le_bytes()).is_ok());
        assert!(changed(12, &((1_u32 << 24) + 1).to_le_bytes()).unwrap_err().is_corrupt());
        assert!(changed(12, &(1_u32 << 24).to_le_bytes()).is_ok());
        assert!(changed(4, &[4, 0, 0xff, 0xff]).is_ok());
    }
}
