use std::path::Path;
use std::sync::Arc;

use super::{Column, Request, Source};
use crate::buffer::Buffer;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Kind, Schema};
use crate::store::Store;

/// A store of records that all have one shape.
///
/// Cheap to clone; the clones share the store.
#[derive(Clone, Debug)]
pub struct Dense {
    store: Arc<Store>,
    schema: Schema,
}

impl Dense {
    /// Opens the dense store in the directory `path` for reading.
    ///
    /// # Errors
    ///
    /// When there is no store, it is damaged, has no schema or is ragged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(Arc::new(Store::open(path)?))
    }

    /// Views an open store.
    ///
    /// # Errors
    ///
    /// When the store has no schema or is ragged.
    pub fn new(store: Arc<Store>) -> Result<Self> {
        let schema = match store.schema() {
            None => {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    "the store has no schema, its records are plain bytes",
                )
                .at_path(store.path())
                .with_hint("read it with Store::gather_packed"));
            }
            Some(schema) if schema.kind() != Kind::Dense => {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!("the store holds {schema}, not dense records"),
                )
                .at_path(store.path())
                .with_hint("open it as Ragged"));
            }
            Some(schema) => schema.clone(),
        };
        Ok(Self { store, schema })
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.store.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.schema.dtype()
    }

    /// The shape of one record; empty for scalars.
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        self.schema.item_shape()
    }

    /// Gathers the records at `indices`, in that order, into one buffer of shape `[indices.len(), *item_shape]`.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Dense::len`] or stored data are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<DenseBatch> {
        let elements = indices.len().checked_mul(self.schema.item_elements());
        let elements = elements.ok_or_else(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!("a batch of {} records of {} is too large", indices.len(), self.schema),
            )
        })?;
        let data = Buffer::fill(self.dtype(), elements, |dst| {
            self.store.gather_fixed(indices, self.schema.item_bytes(), dst)
        })?;
        let mut shape = Vec::with_capacity(1 + self.item_shape().len());
        shape.push(indices.len());
        shape.extend_from_slice(self.item_shape());
        Ok(DenseBatch { data, shape })
    }
}

impl Source for Dense {
    fn len(&self) -> u64 {
        Self::len(self)
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.batch(request.indices).map(Column::Dense)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok(indices.len() as u64 * self.schema.item_bytes() as u64)
    }

    fn advise(&self, indices: &[u64]) {
        self.store.advise(indices);
    }

    fn describe(&self) -> String {
        self.schema.to_string()
    }
}

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

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &Buffer {
        &self.data
    }

    /// The elements, read as `T`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.data.as_slice()
    }

    /// The elements as a vector, without a copy, and the shape.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the elements are of another type.
    pub fn into_vec<T: Element>(self) -> Result<(Vec<T>, Vec<usize>)> {
        Ok((self.data.into_vec()?, self.shape))
    }

    /// The elements and the shape.
    #[must_use]
    pub fn into_parts(self) -> (Buffer, Vec<usize>) {
        (self.data, self.shape)
    }
}
