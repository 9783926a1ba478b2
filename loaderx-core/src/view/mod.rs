//! Views: what a store's records look like as batches.
//!
//! [`Dense`] reads records of one shape. A view is a [`Source`]: the loader and the adapters gather through
//! that trait, whatever is behind it.

mod dense;
mod dense_writer;

pub use dense::{Dense, DenseBatch};
pub use dense_writer::DenseWriter;

use crate::dtype::DType;
use crate::error::Result;

/// What is asked of a [`Source`]: these records, for this step of this seed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Indices of the records, in the order of the batch.
    pub indices: &'a [u64],
    /// The step that the batch is for; keys the random numbers of a record map.
    pub step: u64,
    /// The seed that keys them too.
    pub seed: u64,
}

/// One stream's part of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Column {
    /// Records of one shape.
    Dense(DenseBatch),
}

impl Column {
    /// Records in the batch.
    #[must_use]
    pub fn records(&self) -> usize {
        match self {
            Self::Dense(batch) => batch.records(),
        }
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Dense(batch) => batch.data().as_bytes().len(),
        }
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self {
            Self::Dense(batch) => batch.data().dtype(),
        }
    }

    /// The dense batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when it is of another kind.
    pub fn into_dense(self) -> Result<DenseBatch> {
        match self {
            Self::Dense(batch) => Ok(batch),
        }
    }
}

/// Something that batches are gathered from.
pub trait Source: Send + Sync {
    /// Records; every index of a request is below it.
    fn len(&self) -> u64;

    /// Whether there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gathers the records of `request`.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Source::len`] or stored data are damaged.
    fn gather(&self, request: &Request<'_>) -> Result<Column>;

    /// Bytes that a batch of `indices` will hold, or a bound of it; what a loader's cap in bytes counts.
    ///
    /// # Errors
    ///
    /// As [`Source::gather`].
    fn batch_bytes(&self, indices: &[u64]) -> Result<u64>;

    /// Says that these records will be gathered soon. Does nothing by default.
    fn advise(&self, indices: &[u64]) {
        let _ = indices;
    }

    /// A text that names the element type, the shape and every conversion, but not the number of records: what
    /// decides a batch's bytes besides the stored data. A loader's saved state carries it.
    fn describe(&self) -> String;
}
