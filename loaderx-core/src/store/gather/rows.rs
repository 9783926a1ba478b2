//! The innermost part of a gather: uninitialised rows become bytes.
//!
//! # Why this is sound
//!
//! [`fill`] cuts the destination into rows that follow each other without a gap, and hands each to a callback
//! that returns initialised bytes. A returned slice with the row's own address and length can only be the row
//! itself, written: the row was borrowed mutably for the call, so no other slice at that address can exist. Only when
//! every row has come back like that, and the rows have covered the destination, is the destination declared
//! initialised. An error or a panic on the way leaves it as it is, uninitialised and untouched by readers.
#![expect(unsafe_code, reason = "the gather writes into memory that is not initialised yet")]

use std::mem::MaybeUninit;

use zstd_safe::WriteBuf;

use crate::error::{Error, Result};

/// Lets `write(i, row)` fill row i, `lengths(i)` bytes long, for i in `0..rows`; returns the whole as bytes.
#[inline]
pub(super) fn fill(
    dst: &mut [MaybeUninit<u8>],
    rows: usize,
    lengths: impl Fn(usize) -> usize,
    mut write: impl for<'r> FnMut(usize, &'r mut [MaybeUninit<u8>]) -> Result<&'r mut [u8]>,
) -> Result<&mut [u8]> {
    let mut rest = &mut *dst;
    for i in 0..rows {
        let (row, after) = rest
            .split_at_mut_checked(lengths(i))
            .ok_or_else(|| Error::invalid("the rows are longer than the destination"))?;
        let (start, length) = (row.as_ptr().addr(), row.len());
        let written = write(i, row)?;
        if written.as_ptr().addr() != start || written.len() != length {
            return Err(Error::invalid("a row was not written whole"));
        }
        rest = after;
    }
    if !rest.is_empty() {
        return Err(Error::invalid("the rows are shorter than the destination"));
    }
    // SAFETY: the loop has seen every row returned as initialised bytes, and the rows make up all of `dst`.
    Ok(unsafe { dst.assume_init_mut() })
}

/// A vector of `length` bytes that `write` fills.
pub(super) fn fill_vec(
    length: usize,
    mut write: impl for<'r> FnMut(&'r mut [MaybeUninit<u8>]) -> Result<&'r mut [u8]>,
) -> Result<Vec<u8>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(length).map_err(|error| {
        Error::new(crate::ErrorKind::LimitExceeded, format!("no memory for {length} bytes of records"))
            .caused_by(error)
    })?;
    let room = vec
        .spare_capacity_mut()
        .get_mut(..length)
        .ok_or_else(|| Error::invalid("a vector without the room it has reserved"))?;
    fill(room, 1, |_| length, |_, row| write(row))?;
    // SAFETY: `fill` has initialised the first `length` bytes, which the vector has room for.
    unsafe { vec.set_len(length) };
    Ok(vec)
}

/// The row as zero bytes, for readers that want initialised memory.
pub(super) fn zeroed(row: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    row.fill(MaybeUninit::new(0));
    // SAFETY: every byte has just been written.
    unsafe { row.assume_init_mut() }
}

/// A row that zstd decodes into.
pub(super) struct Decoded<'a> {
    row: &'a mut [MaybeUninit<u8>],
    written: usize,
}

impl<'a> Decoded<'a> {
    pub(super) fn into(row: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { row, written: 0 }
    }

    /// The row, if all of it was written.
    pub(super) fn finish(self) -> Result<&'a mut [u8]> {
        if self.written != self.row.len() {
            return Err(Error::corrupt(format!(
                "a frame decoded to {} bytes of {}",
                self.written,
                self.row.len()
            )));
        }
        // SAFETY: `filled_until` was told that the first `written` bytes, which is all, are initialised.
        Ok(unsafe { self.row.assume_init_mut() })
    }
}

// SAFETY: pointer and capacity are those of one borrowed slice, and `as_slice` covers only what `filled_until` was
// told is initialised.
unsafe impl WriteBuf for Decoded<'_> {
    fn as_slice(&self) -> &[u8] {
        let written = self.row.get(..self.written).unwrap_or_default();
        // SAFETY: the first `written` bytes are initialised, by the contract of `filled_until`.
        unsafe { written.assume_init_ref() }
    }

    fn capacity(&self) -> usize {
        self.row.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.row.as_mut_ptr().cast()
    }

    // SAFETY: only notes what the caller promises, that the first `n` bytes are initialised; never more than there are.
    unsafe fn filled_until(&mut self, n: usize) {
        self.written = n.min(self.row.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(length: usize) -> Vec<MaybeUninit<u8>> {
        vec![MaybeUninit::uninit(); length]
    }

    #[test]
    fn rows_of_any_length_become_one_slice() {
        let mut dst = room(6);
        let lengths = [1, 0, 3, 2];
        let bytes = fill(
            &mut dst,
            4,
            |i| lengths[i],
            |i, row| {
                row.fill(MaybeUninit::new(u8::try_from(i).unwrap()));
                Ok(row.write_copy_of_slice(&vec![u8::try_from(i).unwrap(); lengths[i]]))
            },
        )
        .unwrap();
        assert_eq!(bytes, [0, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn rows_that_do_not_cover_the_destination_are_refused() {
        for (rows, length) in [(2, 2), (3, 3), (0, 9)] {
            let mut dst = room(6);
            let result = fill(&mut dst, rows, |_| length, |_, row| Ok(zeroed(row)));
            assert!(result.is_err(), "{rows} rows of {length}");
        }
    }

    #[test]
    fn a_callback_that_returns_other_bytes_is_refused() {
        let mut dst = room(4);
        let result = fill(&mut dst, 1, |_| 4, |_, _| Ok(Box::leak(Box::new([0; 4]))));
        assert!(result.is_err());
        let result = fill(&mut dst, 1, |_| 4, |_, row| Ok(&mut zeroed(row)[..3]));
        assert!(result.is_err());
    }

    #[test]
    fn an_unwritten_row_is_not_given_out() {
        let mut dst = room(4);
        assert!(Decoded::into(&mut dst).finish().is_err());
    }
}
