#![expect(
    unsafe_code,
    reason = "memory is declared initialised here: one of the places where the design allows unsafe"
)]

use std::mem::MaybeUninit;

use super::room::require_same;
use crate::error::{Error, Result};

/// Writes uninitialised memory from front to back and knows when it is full.
///
/// ```
/// # use std::mem::MaybeUninit;
/// use loaderx_core::buffer::Filler;
///
/// # fn main() -> loaderx_core::Result<()> {
/// let mut room = [MaybeUninit::uninit(); 6];
/// let mut filler = Filler::new(&mut room);
/// filler.copy(&[1, 2])?;
/// filler.repeat(&[7, 8], 2)?;
/// assert_eq!(filler.finish()?, [1, 2, 7, 8, 7, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Filler<'a> {
    room: &'a mut [MaybeUninit<u8>],
    // Everything before it has been written.
    filled: usize,
}

impl<'a> Filler<'a> {
    /// Starts at the front of `room`.
    #[must_use]
    pub fn new(room: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { room, filled: 0 }
    }

    /// Bytes that are still to be written.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.room.len() - self.filled
    }

    /// Writes `bytes`.
    ///
    /// # Errors
    ///
    /// When fewer bytes remain.
    pub fn copy(&mut self, bytes: &[u8]) -> Result<()> {
        self.next(bytes.len())?.write_copy_of_slice(bytes);
        self.filled += bytes.len();
        Ok(())
    }

    /// Writes `pattern` (one element) `count` times.
    ///
    /// # Errors
    ///
    /// When fewer bytes remain.
    pub fn repeat(&mut self, pattern: &[u8], count: usize) -> Result<()> {
        let bytes = pattern.len().saturating_mul(count);
        let room = self.next(bytes)?;
        if let Some(&first) = pattern.first() {
            if pattern.iter().all(|&byte| byte == first) {
                // The usual padding value, 0 or -1: one memset.
                room.fill(MaybeUninit::new(first));
            } else {
                for place in room.chunks_exact_mut(pattern.len()) {
                    place.write_copy_of_slice(pattern);
                }
            }
        }
        self.filled += bytes;
        Ok(())
    }

    /// Lets `write` fill the next `bytes` bytes, which it returns initialised.
    ///
    /// # Errors
    ///
    /// When fewer bytes remain; the error of `write`; when it returns other bytes than it was given.
    pub fn with(
        &mut self,
        bytes: usize,
        write: impl for<'b> FnOnce(&'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]>,
    ) -> Result<()> {
        let room = self.next(bytes)?;
        let same = (room.as_ptr().cast::<u8>(), room.len());
        require_same(same, write(room)?)?;
        self.filled += bytes;
        Ok(())
    }

    /// The whole memory, initialised.
    ///
    /// # Errors
    ///
    /// When bytes remain.
    pub fn finish(self) -> Result<&'a mut [u8]> {
        if self.remaining() > 0 {
            return Err(Error::invalid(format!(
                "{} of {} bytes of batch memory were left unwritten",
                self.remaining(),
                self.room.len()
            )));
        }
        // SAFETY: `filled` reached the end, and it only ever moved over bytes that had just been written: by
        // `copy` and `repeat` themselves, by `with` as `require_same` proved.
        Ok(unsafe { self.room.assume_init_mut() })
    }

    fn next(&mut self, bytes: usize) -> Result<&mut [MaybeUninit<u8>]> {
        let (remaining, whole) = (self.remaining(), self.room.len());
        self.room.get_mut(self.filled..).and_then(|rest| rest.get_mut(..bytes)).ok_or_else(|| {
            Error::invalid(format!(
                "{bytes} bytes do not go into the last {remaining} of {whole} bytes of batch memory"
            ))
        })
    }
}
