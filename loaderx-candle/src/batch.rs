use candle_core::{Device, Tensor};
use loaderx_core::loader::Skipped;
use loaderx_core::{Error, ErrorKind};

use crate::error::into_candle;
use crate::ragged::{Packed, PackedRows, Padded};

/// What one step delivers, as tensors: one entry for each stream, all of the same records in the same order.
///
/// No entry is a view of a larger tensor and none belongs to a graph. Cloning is cheap: tensors share their memory.
#[derive(Clone, Debug)]
pub struct TensorBatch {
    pub(crate) step: u64,
    pub(crate) indices: Vec<u64>,
    pub(crate) entries: Vec<(String, Entry)>,
    pub(crate) skipped: Vec<Skipped>,
}

/// One stream's part of a [`TensorBatch`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry {
    /// Of a dense view: `(records, *item_shape)`.
    Tensor(Tensor),
    /// Of a padded ragged view.
    Padded(Padded),
    /// Of a ragged view as it is: records one after the other.
    Packed(Packed),
    /// Of a packing ragged view: several records to a row.
    PackedRows(PackedRows),
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "dense",
            Self::Padded(_) => "padded",
            Self::Packed(_) => "packed",
            Self::PackedRows(_) => "packed into rows",
        }
    }

    fn to_device(&self, device: &Device) -> candle_core::Result<Self> {
        Ok(match self {
            Self::Tensor(tensor) => Self::Tensor(tensor.to_device(device)?),
            Self::Padded(padded) => Self::Padded(padded.to_device(device)?),
            Self::Packed(packed) => Self::Packed(packed.to_device(device)?),
            Self::PackedRows(rows) => Self::PackedRows(rows.to_device(device)?),
        })
    }
}

impl TensorBatch {
    /// The step that this batch is.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.indices.len()
    }

    /// The records in the batch, in its order.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// The streams' names, in the order in which the loader was given them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The damaged records that were left out; empty unless the loader skips damage.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The entry of the stream `name`.
    ///
    /// # Errors
    ///
    /// When there is no such stream; the error lists those that there are.
    pub fn entry(&self, name: &str) -> candle_core::Result<&Entry> {
        let found = self.entries.iter().find(|(known, _)| known == name);
        found.map(|(_, entry)| entry).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            into_candle(Error::new(
                ErrorKind::NotFound,
                format!("there is no stream {name:?}, the streams are {names:?}"),
            ))
        })
    }

    /// The tensor of the dense stream `name`.
    ///
    /// # Errors
    ///
    /// As [`TensorBatch::entry`], and when the stream is ragged.
    pub fn tensor(&self, name: &str) -> candle_core::Result<&Tensor> {
        match self.entry(name)? {
            Entry::Tensor(tensor) => Ok(tensor),
            other => Err(mistaken(name, other, "dense")),
        }
    }

    /// The padded ragged stream `name`.
    ///
    /// # Errors
    ///
    /// As [`TensorBatch::entry`], and when the stream has another form.
    pub fn padded(&self, name: &str) -> candle_core::Result<&Padded> {
        match self.entry(name)? {
            Entry::Padded(padded) => Ok(padded),
            other => Err(mistaken(name, other, "padded")),
        }
    }

    /// The ragged stream `name`, its records one after the other.
    ///
    /// # Errors
    ///
    /// As [`TensorBatch::entry`], and when the stream has another form.
    pub fn packed(&self, name: &str) -> candle_core::Result<&Packed> {
        match self.entry(name)? {
            Entry::Packed(packed) => Ok(packed),
            other => Err(mistaken(name, other, "packed")),
        }
    }

    /// The ragged stream `name`, several records to a row.
    ///
    /// # Errors
    ///
    /// As [`TensorBatch::entry`], and when the stream has another form.
    pub fn packed_rows(&self, name: &str) -> candle_core::Result<&PackedRows> {
        match self.entry(name)? {
            Entry::PackedRows(rows) => Ok(rows),
            other => Err(mistaken(name, other, "packed into rows")),
        }
    }

    /// The same batch on `device`; on the device where it is already, nothing is copied.
    ///
    /// Call it on the thread that trains: candle's CUDA device has one stream for each thread, and kernels of one do
    /// not wait for copies of another.
    ///
    /// # Errors
    ///
    /// Those of [`Tensor::to_device`].
    pub fn to_device(&self, device: &Device) -> candle_core::Result<Self> {
        let entries = self.entries.iter().map(|(name, entry)| Ok((name.clone(), entry.to_device(device)?)));
        Ok(Self {
            step: self.step,
            indices: self.indices.clone(),
            entries: entries.collect::<candle_core::Result<_>>()?,
            skipped: self.skipped.clone(),
        })
    }
}

fn mistaken(name: &str, entry: &Entry, wanted: &str) -> candle_core::Error {
    into_candle(
        Error::new(
            ErrorKind::SchemaMismatch,
            format!("stream {name:?} is {} in this batch, not {wanted}", entry.kind()),
        )
        .with_hint(
            "the view that the loader was given decides: dense, ragged, or ragged with padding or packing",
        ),
    )
}
