//! The endless loader as burn's `DataLoader`.

mod part;
mod stream;

use std::fmt;
use std::sync::Arc;

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;
use loaderx_core::loader::{Batch, LoaderBuilder, LoaderState};
use loaderx_core::{Error, ErrorKind, Result};

use stream::Stream;

/// A loaderx loader as burn's `DataLoader`: for `SupervisedTraining`, the evaluator, or a loop of one's own.
///
/// It is made from a description of a [`Loader`](loaderx_core::Loader) and a function that turns what the loader
/// delivers into tensors. The workers gather, decompress and transform in host memory; the function runs on the
/// thread that asks for the batch, so no worker ever opens a stream on a GPU.
///
/// An epoch is a number of steps: a cycle over the records unless [`StepLoader::with_steps_per_epoch`] says
/// otherwise, or all of a finite sampler such as [`Pass`](loaderx_core::sampler::Pass), which makes a validation set
/// with an exact count.
///
/// ```
/// use burn::data::dataloader::DataLoader;
/// use burn::tensor::{Device, Int, Tensor};
/// use loaderx_burn::{StepLoader, TakeTensor};
/// use loaderx_core::sampler::{Cyclic, Pass};
/// use loaderx_core::{Codec, DType, DenseWriter, Loader};
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
/// let streams = Loader::builder().stream("position", positions).stream("class", classes).workers(2);
/// let points = |mut batch: loaderx_core::Batch, device: &Device| {
///     Ok(Points {
///         position: batch.take_float("position", device)?,
///         class: batch.take_int("class", device)?,
///     })
/// };
/// let train = StepLoader::new(streams.clone().sampler(Cyclic::new(10, 4, 42)?), points)?.on(Device::flex());
/// let valid = StepLoader::new(streams.sampler(Pass::new(10, 4)?), points)?.on(Device::flex());
///
/// assert_eq!((train.iter().count(), train.num_items()), (2, 8)); // full batches; which 2 are left out differs
/// assert_eq!((valid.iter().count(), valid.num_items()), (3, 10)); // each record once, the last batch short
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Order, errors, resume
///
/// Batches come in step order and are the same for any number of workers. What fails at a step (a damaged record, a
/// panic in a transform) is that item's error, and the next item is the next step.
///
/// Each `iter()` is the next epoch. One that is dropped early leaves the rest of its epoch out. Two that live at the
/// same time deliver two epochs, each complete; what was prepared is thrown away whenever they take turns.
///
/// [`StepLoader::state`] is to be saved with the model. A description with
/// [`resume`](loaderx_core::loader::LoaderBuilder::resume) goes on from it, within an epoch, too;
/// [`StepLoader::skip_epochs`] goes with `SupervisedTraining::checkpoint`.
///
/// # Several devices
///
/// burn cuts a loader into slices, one for each device. The sampler's batch is the batch of all devices together, and
/// a slice is its share of every step: all slices have the same number of steps, together they are the epoch of the
/// whole, and every device sees all records in the course of the epochs.
pub struct StepLoader<O, T = Batch> {
    stream: Arc<Stream<T>>,
    assemble: Arc<Assemble<T, O>>,
    device: Option<Device>,
}

type Assemble<T, O> = dyn Fn(T, &Device) -> Result<O> + Send + Sync;

impl<O: 'static, T: Send + 'static> StepLoader<O, T> {
    /// Builds the loader and starts its workers. `assemble` makes the tensors.
    ///
    /// # Errors
    ///
    /// As [`LoaderBuilder::build`].
    pub fn new<F>(loader: LoaderBuilder<T>, assemble: F) -> Result<Self>
    where
        F: Fn(T, &Device) -> Result<O> + Send + Sync + 'static,
    {
        Ok(Self { stream: Arc::new(Stream::new(loader, None)?), assemble: Arc::new(assemble), device: None })
    }

    /// As [`StepLoader::new`], with epochs of `steps` steps: the interval of validation and checkpoints.
    ///
    /// # Errors
    ///
    /// As [`LoaderBuilder::build`]; when `steps` is 0, or the sampler is finite and has another number of steps.
    pub fn with_steps_per_epoch<F>(loader: LoaderBuilder<T>, steps: u64, assemble: F) -> Result<Self>
    where
        F: Fn(T, &Device) -> Result<O> + Send + Sync + 'static,
    {
        Ok(Self {
            stream: Arc::new(Stream::new(loader, Some(steps))?),
            assemble: Arc::new(assemble),
            device: None,
        })
    }

    /// The same loader with its tensors on `device`. burn's training moves loaders by itself; until one or the other
    /// happens it is burn's default device.
    #[must_use]
    pub fn on(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Begins after so many epochs: with the `n` that is given to `SupervisedTraining::checkpoint`, the data go on
    /// where they were when that checkpoint was saved. A finite pass has nothing to skip.
    #[must_use]
    pub fn skip_epochs(self, epochs: u64) -> Self {
        self.stream.skip(epochs);
        self
    }

    /// Steps of an epoch: the length of `iter()` in batches.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        self.stream.steps()
    }

    /// The state to save with the model: the step after the batch that was delivered last.
    ///
    /// # Errors
    ///
    /// When the loader is a slice that could not be made.
    pub fn state(&self) -> Result<LoaderState> {
        self.stream.state()
    }

    fn moved(&self, device: Option<Device>, stream: Arc<Stream<T>>) -> Self {
        Self { stream, assemble: Arc::clone(&self.assemble), device }
    }
}

impl<O: Send + 'static, T: Send + 'static> DataLoader<O> for StepLoader<O, T> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let epoch = self.stream.begin();
        Box::new(StepIter {
            loader: self,
            // Here and not before: asking burn for its default device may start a GPU's runtime.
            device: self.device.clone().unwrap_or_default(),
            done: self.stream.items_of(epoch.start..epoch.next),
            total: self.stream.items_of(epoch.start..epoch.end),
            next: epoch.next,
            end: epoch.end,
        })
    }

    fn num_items(&self) -> usize {
        count(self.stream.items())
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(self.moved(Some(device.clone()), Arc::clone(&self.stream)))
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        Arc::new(self.moved(self.device.clone(), Arc::new(self.stream.slice(start, end))))
    }
}

impl<O, T> fmt::Debug for StepLoader<O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepLoader").field("device", &self.device).finish_non_exhaustive()
    }
}

/// One epoch.
struct StepIter<'a, O, T> {
    loader: &'a StepLoader<O, T>,
    device: Device,
    next: u64,
    end: u64,
    /// Items of the steps that were delivered, those that failed among them.
    done: u64,
    total: u64,
}

impl<O: 'static, T: Send + 'static> Iterator for StepIter<'_, O, T> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let StepLoader { stream, assemble, .. } = self.loader;
        let step = self.next;
        let received = stream.receive(step)?;
        self.next += 1;
        self.done += stream.items_of(step..self.next);
        let output =
            received.and_then(|batch| assemble(batch, &self.device).map_err(|error| failed(step, error)));
        Some(output.map_err(DatasetError::new))
    }
}

impl<O: 'static, T: Send + 'static> DataLoaderIterator<O> for StepIter<'_, O, T> {
    fn progress(&self) -> Progress {
        Progress::new(count(self.done), count(self.total), Some("items".to_owned()))
    }
}

fn failed(step: u64, error: Error) -> Error {
    Error::new(ErrorKind::Callback, format!("no tensors could be made of step {step}")).caused_by(error)
}

fn count(items: u64) -> usize {
    usize::try_from(items).unwrap_or(usize::MAX)
}
