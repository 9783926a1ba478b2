use std::path::Path;
use std::sync::Arc;

use super::ragged::too_large;
use super::{Column, DenseBatch, Request, Source, schema_of};
use crate::buffer::{check_truth, rows};
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
        let schema = schema_of(&store, Kind::Dense)?;
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

    /// Kind, element type and record shape.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
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
        let item = self.schema.item_elements();
        let elements =
            indices.len().checked_mul(item).ok_or_else(|| too_large(indices.len(), &self.schema))?;
        let data = request.memory.room(self.dtype(), elements)?.fill(|room| {
            let item_bytes = self.schema.item_bytes();
            let written = if request.threads > 1 {
                rows::fill(room, indices.len(), item_bytes, request.threads, |range, block| {
                    self.store.gather_fixed(indices.get(range).unwrap_or(&[]), item_bytes, block)
                })?
            } else {
                self.store.gather_fixed(indices, item_bytes, room)?
            };
            if self.dtype() == DType::Bool {
                self.check_truth(indices, written)?;
            }
            Ok(written)
        })?;
        Ok(DenseBatch::trusted(data, batch_shape(indices.len(), self.item_shape())))
    }

    fn check_truth(&self, indices: &[u64], bytes: &[u8]) -> Result<()> {
        check_truth(bytes).map_err(|error| {
            let at = error.offset().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
            let record = at.checked_div(self.schema.item_bytes()).unwrap_or(0);
            let error = error.at_path(self.store.path());
            match indices.get(record) {
                Some(&index) => error.for_record(index),
                None => error,
            }
        })
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
        Ok(indices.len() as u64 * self.schema.item_bytes() as u64)
    }

    fn advise(&self, indices: &[u64]) {
        self.store.advise(indices);
    }

    fn describe(&self) -> String {
        self.schema.to_string()
    }
}

/// `[records, *item_shape]`.
pub(super) fn batch_shape(records: usize, item_shape: &[usize]) -> Vec<usize> {
    [&[records], item_shape].concat()
}
