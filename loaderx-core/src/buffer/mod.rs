//! Batch memory: allocated before the gather, filled by it, handed on without a copy.
//!
//! A tensor on the CPU can only own memory of the kind that its framework knows, so that memory has to exist
//! before the first record is copied. Three steps lead from nothing to a batch:
//!
//! 1. an [`Allocator`] gives a [`Room`] for so many elements of a type: [`Vecs`] gives a typed `Vec`, a
//!    [`Pool`] gives memory that an earlier batch has returned;
//! 2. [`Room::fill`] lends it as uninitialised bytes. Whoever writes it may split it among threads
//!    ([`rows`]) and gives it back as initialised bytes: that slice is the proof that everything was written.
//!    An error or a panic on the way drops the room, and nobody ever sees what was in it;
//! 3. the [`Buffer`] is read as elements, moved out as the `Vec<T>` that it is, or kept as bytes.
//!
//! ```
//! use loaderx_core::buffer::{Allocator, Pool, Vecs};
//! use loaderx_core::DType;
//!
//! # fn main() -> loaderx_core::Result<()> {
//! let stored = 1.5_f32.to_le_bytes();
//! let buffer = Vecs.room(DType::F32, 1)?.fill(|bytes| Ok(bytes.write_copy_of_slice(&stored)))?;
//! assert_eq!(buffer.into_vec::<f32>()?, [1.5]); // the vector that was filled, not a copy
//!
//! let pool = Pool::new();
//! let buffer = pool.room(DType::F32, 1)?.fill(|bytes| Ok(bytes.write_copy_of_slice(&stored)))?;
//! assert_eq!(buffer.as_slice::<f32>()?, [1.5]);
//! drop(buffer); // the memory waits in the pool for the next batch
//! assert!(pool.idle_bytes() > 0);
//! # Ok(())
//! # }
//! ```
//!
//! Truth values are bytes of 0 or 1 and are read as `u8`: `bool` in Rust forbids every other byte, so a damaged
//! store could not even be looked at through it.

mod cast;
mod each;
mod filler;
mod memory;
mod pool;
mod room;
pub mod rows;
mod typed;

pub use cast::{bytes_of, elements_of, elements_of_mut};
pub(crate) use each::{write_each, write_each_with};
pub use filler::Filler;
pub use memory::Memory;
pub use pool::Pool;
pub(crate) use room::check_truth;
pub use room::{Allocator, Room, Vecs};

use std::fmt;
use std::mem::MaybeUninit;

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use typed::TypedVec;

/// The elements of a batch, one after the other.
///
/// It is an owner of bytes (`AsRef<[u8]> + Send + Sync + 'static`), so a framework that takes shared bytes can
/// take it whole, whatever memory is behind it.
pub struct Buffer {
    dtype: DType,
    elements: usize,
    data: Data,
}

enum Data {
    Typed(TypedVec),
    Memory(Box<dyn Memory>),
}

impl Buffer {
    /// Allocates a typed vector for `elements` of `dtype` and lets `write` fill it: [`Vecs`] and
    /// [`Room::fill`] in one call.
    ///
    /// # Errors
    ///
    /// As [`Allocator::room`] and [`Room::fill`].
    pub fn fill(
        dtype: DType,
        elements: usize,
        write: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>,
    ) -> Result<Self> {
        Vecs.room(dtype, elements)?.fill(write)
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements == 0
    }

    /// The elements' memory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.data {
            Data::Typed(vec) => vec.as_bytes(),
            Data::Memory(memory) => memory::filled(&**memory, self.bytes()),
        }
    }

    /// The elements; truth values are read as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.require::<T>()?;
        elements_of(self.as_bytes()).ok_or_else(|| self.mismatch::<T>())
    }

    /// The elements, to be changed in place; truth values as `u8`, which must stay 0 or 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.require::<T>()?;
        let mismatch = self.mismatch::<T>();
        let bytes = self.bytes();
        let bytes = match &mut self.data {
            Data::Typed(vec) => vec.as_bytes_mut(),
            Data::Memory(memory) => memory::filled_mut(&mut **memory, bytes),
        };
        elements_of_mut(bytes).ok_or(mismatch)
    }

    /// The elements as a vector; truth values as `u8`.
    ///
    /// The vector that [`Vecs`] allocated is moved out. Elements in memory of a [`Pool`] are copied.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn into_vec<T: Element>(self) -> Result<Vec<T>> {
        self.require::<T>()?;
        let mismatch = self.mismatch::<T>();
        match self.data {
            Data::Typed(vec) => vec.into_vec::<T>().ok_or(mismatch),
            Data::Memory(_) => self.as_slice().map(<[T]>::to_vec),
        }
    }

    /// Whether [`Buffer::into_vec`] moves the elements out, without a copy.
    #[must_use]
    pub fn is_vec(&self) -> bool {
        matches!(self.data, Data::Typed(_))
    }

    /// Truth values from bytes that are known to be 0 or 1.
    pub(crate) fn from_truth(values: Vec<u8>) -> Self {
        debug_assert!(values.iter().all(|&value| value <= 1));
        Self { dtype: DType::Bool, elements: values.len(), data: Data::Typed(TypedVec::U8(values)) }
    }

    fn bytes(&self) -> usize {
        // A room of so many bytes was allocated, so the product does not overflow.
        self.elements * self.dtype.size()
    }

    fn require<T: Element>(&self) -> Result<()> {
        if self.dtype == T::DTYPE || (self.dtype == DType::Bool && T::DTYPE == DType::U8) {
            return Ok(());
        }
        Err(self.mismatch::<T>())
    }

    fn mismatch<T: Element>(&self) -> Error {
        let error = Error::new(
            ErrorKind::SchemaMismatch,
            format!("the batch holds {}, not {}", self.dtype, T::DTYPE),
        );
        if self.dtype == DType::Bool {
            error.with_hint("truth values are read as u8")
        } else {
            error.with_hint(format!("read it as {}, or have the view convert it (`convert`)", self.dtype))
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// The copy is a typed vector, whatever memory the original lies in.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        let data = match &self.data {
            Data::Typed(vec) => vec.clone(),
            Data::Memory(_) => TypedVec::from_bytes(self.dtype, self.as_bytes()),
        };
        Self { dtype: self.dtype, elements: self.elements, data: Data::Typed(data) }
    }
}

/// Type and number of the elements, not the elements.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = if self.is_vec() { "vec" } else { "memory" };
        write!(f, "Buffer({} x {}, {memory})", self.elements, self.dtype)
    }
}

/// A vector becomes a buffer of its element type, without a copy.
impl<T: Element> From<Vec<T>> for Buffer {
    fn from(vec: Vec<T>) -> Self {
        Self { dtype: T::DTYPE, elements: vec.len(), data: Data::Typed(TypedVec::from_vec(vec)) }
    }
}

#[cfg(test)]
mod tests;
