use crate::buffer::Buffer;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

/// Records of one shape, one after the other.
#[derive(Clone, Debug)]
pub struct DenseBatch {
    data: Buffer,
    shape: Vec<usize>,
}

impl DenseBatch {
    /// A batch from its elements and its shape `[records, *item_shape]`.
    ///
    /// # Errors
    ///
    /// When the shape does not have as many elements as `data`.
    pub fn from_parts(data: Buffer, shape: Vec<usize>) -> Result<Self> {
        let elements = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
        if shape.is_empty() || elements != Some(data.len()) {
            return Err(Error::invalid(format!("{} elements do not have the shape {shape:?}", data.len())));
        }
        Ok(Self { data, shape })
    }

    /// A batch whose shape is known to have as many elements as `data`.
    pub(super) fn trusted(data: Buffer, shape: Vec<usize>) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len());
        Self { data, shape }
    }

    /// Records in the batch: the first side of the shape.
    #[must_use]
    pub fn records(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// `[records, *item_shape]`.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &Buffer {
        &self.data
    }

    /// The elements, read as `T`; truth values as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.data.as_slice()
    }

    /// The elements, to be changed in place.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.data.as_mut_slice()
    }

    /// The elements as a vector, as [`Buffer::into_vec`], and the shape.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when the elements are of another type.
    pub fn into_vec<T: Element>(self) -> Result<(Vec<T>, Vec<usize>)> {
        Ok((self.data.into_vec()?, self.shape))
    }

    /// The elements and the shape.
    #[must_use]
    pub fn into_parts(self) -> (Buffer, Vec<usize>) {
        (self.data, self.shape)
    }
}
