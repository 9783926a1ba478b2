//! Typed batch memory: allocated before the gather, filled by it, handed on as a `Vec<T>` without a copy.
//!
//! A tensor on the CPU can only own a `Vec` of its element type, so the typed memory has to exist before the
//! first record is copied. [`Buffer::fill`] makes it, uninitialised, lets a gather write it and takes the
//! gather's returned slice as the proof that all of it was written.

mod typed;

use std::mem::MaybeUninit;

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use typed::TypedVec;

/// The elements of a batch, one after the other.
#[derive(Clone, Debug)]
pub struct Buffer {
    dtype: DType,
    data: TypedVec,
}

impl Buffer {
    /// Allocates room for `elements` of `dtype` and lets `write` fill it.
    ///
    /// `write` gets the room as uninitialised bytes and returns the same bytes, initialised; a gather of
    /// [`Store`](crate::Store) does just that. The room is aligned for `dtype`.
    ///
    /// # Errors
    ///
    /// The error of `write`; when it returns other bytes than it was given; when a truth value is neither 0 nor
    /// 1; when so much memory cannot be had.
    pub fn fill(
        dtype: DType,
        elements: usize,
        write: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>,
    ) -> Result<Self> {
        let data = TypedVec::fill(dtype, elements, write)?;
        let buffer = Self { dtype, data };
        if dtype == DType::Bool
            && let Some(value) = buffer.as_bytes().iter().find(|&&value| value > 1)
        {
            return Err(Error::corrupt(format!(
                "a truth value is stored as {value}, only 0 and 1 are possible"
            )));
        }
        Ok(buffer)
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.as_bytes().len() / self.dtype.size()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.as_bytes().is_empty()
    }

    /// The elements' memory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.data.as_bytes()
    }

    /// The elements; truth values are read as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.data.as_slice::<T>().ok_or_else(|| self.mismatch::<T>())
    }

    /// The elements as the vector that the gather wrote, without a copy; truth values as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn into_vec<T: Element>(self) -> Result<Vec<T>> {
        let mismatch = self.mismatch::<T>();
        self.data.into_vec::<T>().ok_or(mismatch)
    }

    fn mismatch<T: Element>(&self) -> Error {
        Error::new(ErrorKind::SchemaMismatch, format!("the batch holds {}, not {}", self.dtype, T::DTYPE))
    }
}

/// A vector becomes a buffer of its element type, without a copy.
impl<T: Element> From<Vec<T>> for Buffer {
    fn from(vec: Vec<T>) -> Self {
        Self { dtype: T::DTYPE, data: TypedVec::from_vec(vec) }
    }
}
