//! Read-only memory mappings, and the writable one of the header page.
//!
//! # Why this is sound
//!
//! A mapped file can change under the reader: the writer of the same or of another process appends to it.
//! References into such memory are sound as long as the bytes behind them do not change, so a [`Mapping`]
//! never hands out the whole file, only ranges that the caller names, and the store names only ranges that are
//! committed. Committed bytes are immutable while any handle is open: appends write past them, and delete and
//! compact hold the presence lock exclusively. The header, which does change, is only ever read by atomic
//! loads. Nothing outside this crate can reach into a mapping.
//!
//! What breaks it: another program that overwrites or truncates the files of an open store. Overwriting gives
//! garbage, which checked reads find; truncating gives SIGBUS on access past the end, which is why
//! positioned reads exist as an alternative.
#![expect(unsafe_code, reason = "mapped memory is reached through raw pointers")]

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// How the pages of a mapping will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Here and there: the kernel reads only the pages that are touched or advised.
    Random,
    /// No particular way.
    Normal,
}

/// A file's content in memory, read-only, as long as the file was when it was mapped.
#[derive(Debug)]
pub struct Mapping {
    // `None` for an empty file, which most systems refuse to map.
    map: Option<MmapRaw>,
}

impl Mapping {
    pub(super) fn new(file: &fs::File, pattern: Pattern) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let size = usize::try_from(size)
            .map_err(|_| io::Error::other(format!("a file of {size} bytes exceeds the address space")))?;
        if size == 0 {
            return Ok(Self { map: None });
        }
        let map = MmapOptions::new().len(size).map_raw_read_only(file)?;
        #[cfg(unix)]
        if pattern == Pattern::Random {
            // Advice only: a kernel without it reads ahead, which is slow and not wrong.
            let _ = map.advise(memmap2::Advice::Random);
        }
        #[cfg(not(unix))]
        let _ = pattern;
        Ok(Self { map: Some(map) })
    }

    /// Bytes mapped.
    pub(crate) fn size(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len)
    }

    /// The bytes `offset..offset + len`, or `None` if they are not all within the mapping.
    ///
    /// The caller names only bytes that no writer changes any more (see the module's documentation).
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        let end = offset.checked_add(len)?;
        if end > self.size() {
            return None;
        }
        let Some(map) = &self.map else { return Some(&[]) };
        // SAFETY: offset <= end <= the mapped length, checked above, so the result is inside the mapping.
        let start = unsafe { map.as_ptr().add(offset) };
        // SAFETY: start..start + len is mapped and readable for as long as `self`, which the result borrows;
        // it is initialised (a page of a file is), and the caller names only bytes that stay as they are.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Loads the 8 bytes at `offset`, a multiple of 8, in one piece, with acquire ordering.
    pub(crate) fn load_u64(&self, offset: usize) -> Option<u64> {
        let map = self.map.as_ref()?;
        let end = offset.checked_add(8)?;
        if end > map.len() || !offset.is_multiple_of(8) {
            return None;
        }
        Some(header_word(map, offset).load(Ordering::Acquire))
    }

    /// Asks for the pages of `offset..offset + len` to be read from the disk soon. Best effort.
    pub(crate) fn will_need(&self, offset: usize, len: usize) {
        #[cfg(unix)]
        if let Some(map) = &self.map
            && offset.checked_add(len).is_some_and(|end| end <= map.len())
        {
            let _ = map.advise_range(memmap2::Advice::WillNeed, offset, len);
        }
        #[cfg(not(unix))]
        let _ = (offset, len);
    }
}

/// The first page of a file, writable and shared with every process that maps the file.
#[derive(Debug)]
pub(super) struct HeaderPage {
    map: MmapRaw,
}

impl HeaderPage {
    /// Maps the first bytes of `file`, at most a page, which must not get shorter afterwards.
    pub(super) fn new(file: &fs::File) -> io::Result<Self> {
        let size = file.metadata()?.len().min(4096);
        let size = usize::try_from(size).map_err(io::Error::other)?;
        Ok(Self { map: MmapOptions::new().len(size).map_raw(file)? })
    }

    /// Stores `value` at `offset` in one piece, with release ordering.
    pub(super) fn store_u64(&self, offset: usize, value: u64) -> io::Result<()> {
        if !offset.is_multiple_of(8) || offset.checked_add(8).is_none_or(|end| end > self.map.len()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a header word outside the header"));
        }
        header_word(&self.map, offset).store(value, Ordering::Release);
        Ok(())
    }

    /// Hands stored words to the file where `fsync` does not see them by itself.
    pub(super) fn flush(&self) -> io::Result<()> {
        if cfg!(target_os = "linux") { Ok(()) } else { self.map.flush() }
    }
}

/// The word at `offset`, which the caller has checked to be aligned and inside the mapping.
fn header_word(map: &MmapRaw, offset: usize) -> &AtomicU64 {
    debug_assert!(offset.is_multiple_of(8) && offset + 8 <= map.len());
    // SAFETY: both callers checked that offset + 8 is within the mapped length.
    let word = unsafe { map.as_mut_ptr().add(offset) };
    // SAFETY: mapped for as long as `map` is borrowed; a mapping starts at a page, so a multiple of 8 is aligned
    // for AtomicU64; and all of our code reaches these bytes by atomic operations only. Where the mapping is
    // read-only, only loads are made (`Mapping` has no store).
    unsafe { AtomicU64::from_ptr(word.cast::<u64>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_given_only_when_it_is_inside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, [1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let map = Mapping::new(&fs::File::open(&path).unwrap(), Pattern::Random).unwrap();
        assert_eq!(map.bytes(2, 3), Some(&[3, 4, 5][..]));
        assert_eq!(map.bytes(9, 0), Some(&[][..]));
        assert_eq!(map.bytes(9, 1), None);
        assert_eq!(map.bytes(usize::MAX, 2), None);
        assert_eq!(map.load_u64(0), Some(0x0807_0605_0403_0201));
        assert_eq!(map.load_u64(8), None);
        assert_eq!(map.load_u64(4), None);
    }

    #[test]
    fn an_empty_file_maps_to_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, []).unwrap();
        let map = Mapping::new(&fs::File::open(&path).unwrap(), Pattern::Normal).unwrap();
        assert_eq!(map.size(), 0);
        assert_eq!(map.bytes(0, 0), Some(&[][..]));
        assert_eq!(map.bytes(0, 1), None);
        assert_eq!(map.load_u64(0), None);
    }

    #[test]
    fn a_stored_word_is_seen_by_an_older_mapping_and_by_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, [0; 24]).unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let reader = Mapping::new(&file, Pattern::Normal).unwrap();
        let page = HeaderPage::new(&file).unwrap();
        page.store_u64(8, 0x1122_3344_5566_7788).unwrap();
        assert_eq!(reader.load_u64(8), Some(0x1122_3344_5566_7788));
        page.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap()[8..16], 0x1122_3344_5566_7788_u64.to_le_bytes());
        assert!(page.store_u64(24, 0).is_err());
        assert!(page.store_u64(4, 0).is_err());
    }
}
