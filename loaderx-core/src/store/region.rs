//! A file as the reading side sees it: mapped, or read by position.

use std::io;
use std::sync::Arc;

use super::ReadMode;
use crate::io::{File, Mapping, Pattern};

/// The bytes `0..size` of a file, as long as it was when the region was made.
#[derive(Debug)]
pub(super) enum Region {
    Mapped(Mapping),
    File { file: Arc<dyn File>, size: u64 },
}

impl Region {
    pub(super) fn new(file: Arc<dyn File>, mode: ReadMode, pattern: Pattern) -> io::Result<Self> {
        if mode == ReadMode::Mapped
            && let Some(mapping) = file.map(pattern)?
        {
            return Ok(Self::Mapped(mapping));
        }
        let size = file.size()?;
        Ok(Self::File { file, size })
    }

    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Mapped(mapping) => mapping.size() as u64,
            Self::File { size, .. } => *size,
        }
    }

    /// The mapped bytes of a range; `None` if the region is not mapped or the range not within it.
    #[inline]
    pub(super) fn mapped(&self, offset: u64, len: u64) -> Option<&[u8]> {
        match self {
            Self::Mapped(mapping) => mapping.bytes(usize::try_from(offset).ok()?, usize::try_from(len).ok()?),
            Self::File { .. } => None,
        }
    }

    /// Fills `buffer` from `offset`.
    pub(super) fn read_exact(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Mapped(_) => {
                let bytes = self.mapped(offset, buffer.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            Self::File { file, size } => {
                if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > *size) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.read_exact_at(buffer, offset)
            }
        }
    }

    /// The two words of the header in an order that sees no length without its tail chunk.
    pub(super) fn header_words(&self) -> io::Result<[u64; 2]> {
        match self {
            Self::Mapped(mapping) => {
                let second = mapping.load_u64(8).ok_or(io::ErrorKind::UnexpectedEof)?;
                let first = mapping.load_u64(0).ok_or(io::ErrorKind::UnexpectedEof)?;
                Ok([first, second])
            }
            Self::File { file, .. } => header_words(file.as_ref()),
        }
    }
}

/// Reads the two words of the header from a file that another process may be writing.
pub(super) fn header_words(file: &dyn File) -> io::Result<[u64; 2]> {
    // A read is not atomic against a concurrent store, so it counts once it has been seen twice.
    let mut last = None;
    loop {
        let mut bytes = [0; 16];
        file.read_exact_at(&mut bytes, 0)?;
        if last == Some(bytes) {
            let [first, second] = bytes.as_chunks::<8>().0 else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            return Ok([u64::from_le_bytes(*first), u64::from_le_bytes(*second)]);
        }
        last = Some(bytes);
    }
}

impl Region {
    /// Asks for the pages of a range to be read soon, where that can be asked.
    pub(super) fn will_need(&self, offset: u64, len: u64) {
        if let (Self::Mapped(mapping), Ok(offset), Ok(len)) =
            (self, usize::try_from(offset), usize::try_from(len))
        {
            mapping.will_need(offset, len);
        }
    }
}
