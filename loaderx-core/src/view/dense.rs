use std::path::Path;
use std::sync::Arc;

use super::ragged::too_large;
use super::typed::Typed;
use super::{Column, DenseBatch, Request, Source};
use crate::buffer::rows;
use crate::dtype::DType;
use crate::error::Result;
use crate::schema::{Kind, Schema};
use crate::store::Store;

/// A store of records that all have one shape.
///
/// Cheap to clone; the clones share the store.
///
/// ```
/// use loaderx_core::{Codec, DType, DenseWriter};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("points");
/// let writer = DenseWriter::create(&path, DType::F32, &[2], Codec::Raw)?;
/// writer.append([0.0_f32, 0.1, 1.0, 1.1, 2.0, 2.1])?;
/// let points = writer.finish()?;
/// let batch = points.batch(&[2, 0])?;
/// assert_eq!(batch.shape(), [2, 2]);
/// assert_eq!(batch.as_slice::<f32>()?, [2.0, 2.1, 0.0, 0.1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Dense {
    records: Typed,
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
        Ok(Self { records: Typed::of_kind(store, Kind::Dense)? })
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.records.store
    }

    /// Records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.records.store.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.store.is_empty()
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.records.schema.dtype()
    }

    /// The shape of one record; empty for scalars.
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        self.records.schema.item_shape()
    }

    /// Kind, element type and record shape.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.records.schema
    }

    /// Gathers the records at `indices`, in that order, into one buffer of shape `[indices.len(), *item_shape]`.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Dense::len`] or stored data are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<DenseBatch> {
        self.gather_batch(&Request::new(indices))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<DenseBatch> {
        let indices = request.indices;
        let item = self.records.schema.item_elements();
        let elements =
            indices.len().checked_mul(item).ok_or_else(|| too_large(indices.len(), &self.records.schema))?;
        let data = request.memory.room(self.dtype(), elements)?.fill(|room| {
            let item_bytes = self.records.schema.item_bytes();
            let written = if request.threads > 1 {
                rows::fill(room, indices.len(), item_bytes, request.threads, |range, block| {
                    self.records.store.gather_fixed(indices.get(range).unwrap_or(&[]), item_bytes, block)
                })?
            } else {
                self.records.store.gather_fixed(indices, item_bytes, room)?
            };
            self.records.check_truth(indices, written, |at| at.checked_div(item_bytes).unwrap_or(0))?;
            Ok(written)
        })?;
        Ok(DenseBatch::trusted(data, batch_shape(indices.len(), self.item_shape())))
    }
}

impl Source for Dense {
    fn len(&self) -> u64 {
        Self::len(self)
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Dense)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok(indices.len() as u64 * self.records.schema.item_bytes() as u64)
    }

    fn advise(&self, indices: &[u64]) {
        self.records.store.advise(indices);
    }

    fn describe(&self) -> String {
        self.records.schema.to_string()
    }
}

/// `[records, *item_shape]`.
pub(super) fn batch_shape(records: usize, item_shape: &[usize]) -> Vec<usize> {
    [&[records], item_shape].concat()
}
