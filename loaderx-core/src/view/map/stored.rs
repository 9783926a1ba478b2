use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// A stored record, as a record map sees it.
///
/// The bytes are lent from the store and may lie at any address, so elements are read one by one and not as a slice.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    bytes: &'a [u8],
    schema: &'a Schema,
    index: u64,
}

impl<'a> Stored<'a> {
    pub(super) fn new(bytes: &'a [u8], schema: &'a Schema, index: u64) -> Self {
        Self { bytes, schema, index }
    }

    /// The decoded bytes: an encoded image of a ragged `u8` store, or the little-endian elements.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The record's index in the store.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.schema.dtype()
    }

    /// The record's shape (dense) or that of one row (ragged).
    #[must_use]
    pub fn item_shape(&self) -> &'a [usize] {
        self.schema.item_shape()
    }

    /// Rows of a ragged record, 1 of a dense one.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.bytes.len().checked_div(self.schema.item_bytes()).unwrap_or(1)
    }

    /// The elements in turn; truth values as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn iter<T: Element>(&self) -> Result<impl ExactSizeIterator<Item = T> + 'a> {
        let dtype = self.dtype();
        if T::DTYPE != dtype && (dtype, T::DTYPE) != (DType::Bool, DType::U8) {
            let message = format!("the record holds {dtype}, not {}", T::DTYPE);
            return Err(Error::new(ErrorKind::SchemaMismatch, message).for_record(self.index));
        }
        Ok(self.bytes.chunks_exact(size_of::<T>()).map(T::from_le))
    }
}
