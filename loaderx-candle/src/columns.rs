use std::collections::BTreeMap;

use loaderx_core::view::Column;
use loaderx_core::{Batch, Error, ErrorKind, Result};

use crate::batch::{Entry, TensorBatch};
use crate::ragged;
use crate::tensor::{Elements, tensor};

/// How the streams of a loader become tensors.
///
/// The stream's view decides the form ([`Entry`]); a stream that is not named here keeps its elements by the table of
/// [`tensor_dtype`](crate::tensor_dtype).
///
/// ```
/// use loaderx_candle::Columns;
///
/// let columns = Columns::new().ids("label").ids("tokens");
/// # let _ = columns;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Columns {
    rules: BTreeMap<String, Elements>,
}

impl Columns {
    /// Every stream by default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the stream `name` `U32`, for class labels and for the ids of an embedding: what candle takes as an index.
    ///
    /// Any whole-number type will do. Each value is checked: one below 0 or above 4,294,967,294 is an error of the
    /// step, which names it. (candle reads the largest `u32` as "no row" and gives zeros without an error.)
    #[must_use]
    pub fn ids(mut self, name: impl Into<String>) -> Self {
        self.rules.insert(name.into(), Elements::Ids);
        self
    }

    /// Makes the tensors of a batch, on the CPU. Memory whose element type stays is moved into them, not copied.
    ///
    /// This is the transform of a [`TensorLoader`](crate::TensorLoader), for those who put a loader together by hand.
    ///
    /// # Errors
    ///
    /// When a rule names a stream that the batch does not have; when candle has no type for the elements; when a value
    /// does not fit.
    pub fn tensors(&self, batch: Batch) -> Result<TensorBatch> {
        if let Some(unknown) = self.rules.keys().find(|name| !batch.names().any(|known| known == *name)) {
            let names: Vec<&str> = batch.names().collect();
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("`Columns` names a stream {unknown:?}, the loader has {names:?}"),
            ));
        }
        let step = batch.step();
        let (indices, skipped) = (batch.indices().to_vec(), batch.skipped().to_vec());
        let mut entries = Vec::new();
        for (name, column) in batch.into_columns() {
            let elements = self.rules.get(&name).copied().unwrap_or_default();
            let entry = entry(column, elements).map_err(|error| error.in_stream(&name))?;
            entries.push((name, entry));
        }
        Ok(TensorBatch { step, indices, entries, skipped })
    }
}

fn entry(column: Column, elements: Elements) -> Result<Entry> {
    Ok(match column {
        Column::Dense(batch) => {
            let (buffer, shape) = batch.into_parts();
            Entry::Tensor(tensor(buffer, &shape, elements)?)
        }
        Column::Ragged(batch) => Entry::Packed(ragged::packed(batch, elements)?),
        Column::Padded(batch) => Entry::Padded(ragged::padded(batch, elements)?),
        Column::Packed(batch) => Entry::PackedRows(ragged::packed_rows(batch, elements)?),
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a {} column has no form as tensors", other.kind()),
            ));
        }
    })
}
