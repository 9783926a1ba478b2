#![expect(
    unsafe_code,
    reason = "memory is declared initialised here: one of the places where the design allows unsafe"
)]

use std::fmt;
use std::mem::MaybeUninit;

use super::memory::{self, Memory};
use super::typed::TypedVec;
use super::{Buffer, Data};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// Where batches get their memory from.
///
/// [`Vecs`] suits frameworks whose tensors own a `Vec`, a [`Pool`](super::Pool) those that take any owner of
/// bytes. An own allocator needs no unsafe code when it chooses between the two, say by size.
pub trait Allocator: fmt::Debug + Send + Sync {
    /// Room for `elements` of `dtype`, aligned for that type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`] when so much memory cannot be had.
    fn room(&self, dtype: DType, elements: usize) -> Result<Room>;
}

/// Gives each batch a `Vec` of its element type, which [`Buffer::into_vec`] moves out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vecs;

impl Allocator for Vecs {
    fn room(&self, dtype: DType, elements: usize) -> Result<Room> {
        Ok(Room { dtype, elements, data: Data::Typed(TypedVec::with_room(dtype, elements)?) })
    }
}

/// Uninitialised memory for the elements of a batch.
pub struct Room {
    dtype: DType,
    elements: usize,
    data: Data,
}

impl Room {
    /// Room for `elements` of `dtype` in memory of another kind than a `Vec`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] when `memory` is too small or not aligned for `dtype`.
    pub fn memory(dtype: DType, elements: usize, mut memory: Box<dyn Memory>) -> Result<Self> {
        let bytes = elements.checked_mul(dtype.size()).filter(|&bytes| bytes <= memory.capacity());
        if bytes.is_none() {
            return Err(Error::invalid(format!(
                "{elements} elements of {dtype} do not fit into {} bytes of memory",
                memory.capacity()
            )));
        }
        if !memory.start_mut().addr().is_multiple_of(dtype.size()) {
            return Err(Error::invalid(format!("the memory is not aligned for {dtype}")));
        }
        Ok(Self { dtype, elements, data: Data::Memory(memory) })
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements that it is for.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Lets `write` fill the room and declares it full.
    ///
    /// `write` gets the room as uninitialised bytes and returns the same bytes, initialised; a gather of
    /// [`Store`](crate::Store) does just that, [`Filler`](super::Filler) and [`rows`](super::rows) help to.
    ///
    /// # Errors
    ///
    /// The error of `write`; [`ErrorKind::InvalidArgument`] when it returns other bytes than it was given;
    /// [`ErrorKind::Corrupt`] when a truth value is neither 0 nor 1. The room is dropped then.
    pub fn fill(
        mut self,
        write: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>,
    ) -> Result<Buffer> {
        // The constructors have established that the product fits.
        let bytes = self.elements * self.dtype.size();
        let uninit = match &mut self.data {
            Data::Typed(vec) => vec.uninit(self.elements),
            Data::Memory(memory) => memory::uninit(&mut **memory, bytes),
        };
        let room = (uninit.as_ptr().cast::<u8>(), uninit.len());
        let written = write(uninit)?;
        require_same(room, written)?;
        if self.dtype == DType::Bool {
            check_truth(written)?;
        }
        if let Data::Typed(vec) = &mut self.data {
            // SAFETY: `uninit` covered the first `elements` places of the vector's capacity, and `written` is that
            // very memory as `&mut [u8]`, so all of it is initialised.
            unsafe { vec.set_len(self.elements) };
        }
        Ok(Buffer { dtype: self.dtype, elements: self.elements, data: self.data })
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Room({} x {})", self.elements, self.dtype)
    }
}

/// Refuses `written` as a proof for `room` (start and length) unless it is that very memory.
pub(super) fn require_same(room: (*const u8, usize), written: &[u8]) -> Result<()> {
    // Two empty slices need not share an address to be the same.
    if written.len() == room.1 && (room.1 == 0 || std::ptr::eq(written.as_ptr(), room.0)) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a writer of batch memory returned {} bytes that are not the {} bytes it was given",
        written.len(),
        room.1
    )))
}

/// Refuses bytes other than 0 and 1; the offset of the first one is in the error.
pub(crate) fn check_truth(bytes: &[u8]) -> Result<()> {
    // All bytes at once first: that loop is vectorised, a search with an early exit is not.
    if bytes.iter().fold(0, |all, byte| all | byte) <= 1 {
        return Ok(());
    }
    let Some((at, value)) = bytes.iter().enumerate().find(|&(_, &value)| value > 1) else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Corrupt,
        format!("truth value {at} is stored as {value}, only 0 and 1 are possible"),
    )
    .at_offset(at as u64))
}
