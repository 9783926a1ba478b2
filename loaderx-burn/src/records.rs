//! Stores behind burn's own `DataLoaderBuilder`.

use std::fmt;
use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use loaderx_core::loader::Batch;
use loaderx_core::view::{Request, Source};
use loaderx_core::{Error, Result};

/// A record by its index: what [`Records`] hands out in place of the data.
///
/// burn shuffles, splits and queues these for next to nothing; the data are read when the batch is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordRef(u64);

impl RecordRef {
    /// The record's index.
    #[must_use]
    pub fn index(self) -> u64 {
        self.0
    }
}

/// Streams of one length as a burn dataset of [`RecordRef`]s. Cheap to clone.
///
/// burn's transforms (`ShuffledDataset`, `PartialDataset`, `ComposedDataset`, ...) and its `DataLoaderBuilder` take
/// it as it is. The data are gathered by the [batcher](Records::batcher), once for each batch and stream: burn's
/// shuffle asks a dataset for one item at a time, so reading in `get` would read one record at a time.
///
/// ```
/// use burn::data::dataloader::DataLoaderBuilder;
/// use burn::tensor::{Device, Int, Tensor};
/// use loaderx_burn::{Records, TakeTensor};
/// use loaderx_core::{Codec, DType, DenseWriter};
///
/// #[derive(Clone, Debug)]
/// struct Points {
///     position: Tensor<2>,
///     class: Tensor<1, Int>,
/// }
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let positions = DenseWriter::create(dir.path().join("position"), DType::F32, &[2], Codec::Raw)?;
/// # positions.append(vec![0.0_f32; 20])?;
/// # let classes = DenseWriter::create(dir.path().join("class"), DType::I64, &[], Codec::Raw)?;
/// # classes.append(vec![1_i64; 10])?;
/// # let (positions, classes) = (positions.finish()?, classes.finish()?);
/// let records = Records::builder().stream("position", positions).stream("class", classes).build()?;
/// let batcher = records.batcher(|mut batch, device| {
///     Ok(Points {
///         position: batch.take_float("position", device)?,
///         class: batch.take_int("class", device)?,
///     })
/// });
/// let loader = DataLoaderBuilder::new(batcher)
///     .batch_size(4)
///     .shuffle(42)
///     .set_device(Device::flex())
///     .build(records);
/// assert_eq!(loader.iter().count(), 3);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # What burn cannot report
///
/// burn's `Batcher` has no way to return an error, so a damaged record that the batcher meets is a panic with the
/// message of the error. With one worker or more, burn 0.22 turns a panic into a silent end of the epoch: leave
/// `num_workers` at 0 (the gather is as fast as burn's queue), or take [`StepLoader`](crate::StepLoader), which
/// delivers the error. [`Records::verified`] finds damage in `get`, where burn does report it, for the price of
/// reading each record twice.
#[derive(Clone)]
pub struct Records {
    streams: Arc<[(String, Arc<dyn Source>)]>,
    len: u64,
    verified: bool,
}

/// Puts [`Records`] together.
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct RecordsBuilder {
    streams: Vec<(String, Arc<dyn Source>)>,
}

impl RecordsBuilder {
    /// Adds a stream: each batch has a column of this name, gathered from `source`.
    pub fn stream(mut self, name: impl Into<String>, source: impl Source + 'static) -> Self {
        self.streams.push((name.into(), Arc::new(source)));
        self
    }

    /// Checks that the streams fit together.
    ///
    /// # Errors
    ///
    /// Without streams, and for streams of one name, of different lengths or of more records than burn can count.
    pub fn build(self) -> Result<Records> {
        let Some((first, source)) = self.streams.first() else {
            return Err(Error::invalid("there is no stream").with_hint("add one with `stream(name, source)`"));
        };
        let len = source.len();
        for (at, (name, source)) in self.streams.iter().enumerate() {
            if self.streams.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(Error::invalid(format!("two streams have the name {name:?}")));
            }
            if source.len() != len {
                let other = source.len();
                return Err(Error::invalid(format!(
                    "stream {first:?} has {len} records, stream {name:?} has {other}"
                ))
                .with_hint("all streams are gathered at the same indices, so they need the same length"));
            }
        }
        if usize::try_from(len).is_err() {
            return Err(Error::invalid(format!("{len} records are more than burn can count here")));
        }
        Ok(Records { streams: self.streams.into(), len, verified: false })
    }
}

impl Records {
    /// Begins to name the streams.
    pub fn builder() -> RecordsBuilder {
        RecordsBuilder::default()
    }

    /// The same records, each read once when burn asks for its reference, so that damage is reported as burn's
    /// `DatasetError` and not as a panic of the batcher.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.verified = true;
        self
    }

    /// Gathers the records at `indices`: a batch with a column of each stream.
    ///
    /// # Errors
    ///
    /// When an index is out of range or a record is damaged.
    pub fn gather(&self, indices: Vec<u64>) -> Result<Batch> {
        let request = Request::new(&indices);
        let columns = self
            .streams
            .iter()
            .map(|(name, source)| {
                let column = source.gather(&request).map_err(|error| error.in_stream(name))?;
                Ok((name.clone(), column))
            })
            .collect::<Result<Vec<_>>>()?;
        Batch::from_columns(indices, columns)
    }

    /// A burn batcher that gathers a batch's records at once and hands them to `assemble`, which makes the tensors.
    pub fn batcher<O, F>(&self, assemble: F) -> GatherBatcher<F>
    where
        F: Fn(Batch, &Device) -> Result<O> + Send + Sync,
    {
        GatherBatcher { records: self.clone(), assemble }
    }
}

impl Dataset<RecordRef> for Records {
    /// # Panics
    ///
    /// When `index` is not below the length, as burn's contract says.
    fn get(&self, index: usize) -> Result<RecordRef, DatasetError> {
        let record = index as u64;
        assert!(record < self.len, "index {index} is out of range of {} records", self.len);
        if self.verified {
            self.gather(vec![record]).map_err(DatasetError::new)?;
        }
        Ok(RecordRef(record))
    }

    fn len(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams: Vec<&str> = self.streams.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Records").field("streams", &streams).field("len", &self.len).finish_non_exhaustive()
    }
}

/// Turns [`RecordRef`]s into a batch on the device, with one gather for each stream; made by [`Records::batcher`].
#[derive(Clone)]
pub struct GatherBatcher<F> {
    records: Records,
    assemble: F,
}

impl<O, F> Batcher<RecordRef, O> for GatherBatcher<F>
where
    F: Fn(Batch, &Device) -> Result<O> + Send + Sync,
{
    /// # Panics
    ///
    /// When a record is damaged or `assemble` fails: burn's batchers cannot return an error.
    fn batch(&self, items: Vec<RecordRef>, device: &Device) -> O {
        let indices = items.into_iter().map(RecordRef::index).collect();
        let batch = self.records.gather(indices).and_then(|batch| (self.assemble)(batch, device));
        #[expect(clippy::panic, reason = "burn's Batcher has no other way to say that a record is damaged")]
        batch.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<F> fmt::Debug for GatherBatcher<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherBatcher").field("records", &self.records).finish_non_exhaustive()
    }
}
