use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::view::{Column, DenseBatch, PackedBatch, PaddedBatch, RaggedBatch};

/// What one step delivers: a column of each stream, all of the same records in the same order.
///
/// A column is looked at with [`Batch::column`] or moved out with [`Batch::take`] and its typed forms; moving
/// copies nothing.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) step: u64,
    pub(super) seed: u64,
    pub(super) indices: Vec<u64>,
    pub(super) names: Names,
    /// One place for each name; empty once it was taken.
    pub(super) columns: Vec<Option<Column>>,
    pub(super) skipped: Vec<Skipped>,
}

/// The streams' names, shared by all batches of a loader.
pub(super) type Names = Arc<[String]>;

/// A damaged record that [`OnDamage::Skip`](super::OnDamage::Skip) left out of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// The record's index.
    pub record: u64,
    /// The stream that it could not be read from.
    pub stream: String,
    /// What is wrong with it: the file, the offset and what was found there.
    pub error: Arc<Error>,
}

impl Batch {
    /// A batch from columns that were gathered elsewhere: those of the records `indices`, for step 0 of seed 0.
    ///
    /// For adapters to frameworks that choose the records themselves.
    ///
    /// # Errors
    ///
    /// When two columns have one name, or a column does not have one record for each index.
    pub fn from_columns(indices: Vec<u64>, columns: Vec<(String, Column)>) -> Result<Self> {
        let (names, columns): (Vec<String>, Vec<Column>) = columns.into_iter().unzip();
        for (at, (name, column)) in names.iter().zip(&columns).enumerate() {
            if names.iter().take(at).any(|earlier| earlier == name) {
                return Err(Error::invalid(format!("two columns have the name {name:?}")));
            }
            if column.records() != indices.len() {
                let (found, wanted) = (column.records(), indices.len());
                return Err(Error::invalid(format!("column {name:?} has {found} records, not {wanted}")));
            }
        }
        let columns = columns.into_iter().map(Some).collect();
        Ok(Self { step: 0, seed: 0, indices, names: names.into(), columns, skipped: Vec::new() })
    }

    /// The step that this batch is.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The loader's seed: with [`Batch::step`] it keys random numbers that a resumed run draws again.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The records in the batch, in its order.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// The number of records in the batch.
    #[must_use]
    pub fn records(&self) -> usize {
        self.indices.len()
    }

    /// The streams' names, in the order in which the loader was given them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The column of the stream `name`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no such stream or its column was taken.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let column = self.position(name).and_then(|place| self.columns.get(place)?.as_ref());
        column.ok_or_else(|| self.missing(name))
    }

    /// Moves the column of the stream `name` out of the batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no such stream or its column was taken before.
    pub fn take(&mut self, name: &str) -> Result<Column> {
        let column = self.position(name).and_then(|place| self.columns.get_mut(place)?.take());
        column.ok_or_else(|| self.missing(name))
    }

    /// Moves the dense column of the stream `name` out of the batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::take`]; [`ErrorKind::SchemaMismatch`] when the column is not dense.
    pub fn take_dense(&mut self, name: &str) -> Result<DenseBatch> {
        self.take(name)?.into_dense().map_err(|error| error.in_stream(name))
    }

    /// Moves the ragged column of the stream `name` out of the batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::take`]; [`ErrorKind::SchemaMismatch`] when the column is not ragged.
    pub fn take_ragged(&mut self, name: &str) -> Result<RaggedBatch> {
        self.take(name)?.into_ragged().map_err(|error| error.in_stream(name))
    }

    /// Moves the padded column of the stream `name` out of the batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::take`]; [`ErrorKind::SchemaMismatch`] when the column is not padded.
    pub fn take_padded(&mut self, name: &str) -> Result<PaddedBatch> {
        self.take(name)?.into_padded().map_err(|error| error.in_stream(name))
    }

    /// Moves the packed column of the stream `name` out of the batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::take`]; [`ErrorKind::SchemaMismatch`] when the column is not packed.
    pub fn take_packed(&mut self, name: &str) -> Result<PackedBatch> {
        self.take(name)?.into_packed().map_err(|error| error.in_stream(name))
    }

    /// Moves all columns that were not taken out, with their names.
    #[must_use]
    pub fn into_columns(self) -> Vec<(String, Column)> {
        let columns = self.names.iter().cloned().zip(self.columns);
        columns.filter_map(|(name, column)| Some((name, column?))).collect()
    }

    /// Bytes of memory that the columns hold.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.columns.iter().flatten().map(|column| column.bytes() as u64).sum()
    }

    /// The damaged records that were left out; empty unless the loader skips damage.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn missing(&self, name: &str) -> Error {
        let what = if self.position(name).is_some() {
            format!("the column of stream {name:?} was already taken out of the batch")
        } else {
            format!("there is no stream {name:?}, the streams are {:?}", self.names)
        };
        Error::new(ErrorKind::NotFound, what).at_step(self.step)
    }
}
