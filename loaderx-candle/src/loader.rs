use candle_core::Device;
use loaderx_core::loader::{Evaluation, LoaderBuilder, Stats};
use loaderx_core::sampler::Sampler;
use loaderx_core::{Batch, Loader, LoaderState};

use crate::batch::TensorBatch;
use crate::columns::Columns;
use crate::error::into_candle;

/// An iterator of batches of tensors, in step order, resumed exactly.
///
/// Its items are `candle_core::Result`, so that a loop uses `?` on them and on candle's operations alike; errors of the
/// store below keep their text. Workers read and make tensors on the CPU; the copy to another [`Device`] is made in
/// `next`, on the thread that trains.
///
/// See the [crate's documentation](crate) for an example.
#[derive(Debug)]
pub struct TensorLoader {
    loader: Loader<TensorBatch>,
    device: Device,
}

impl TensorLoader {
    /// Builds the loader that `builder` describes, with `columns` saying how its streams become tensors.
    ///
    /// # Errors
    ///
    /// Those of [`LoaderBuilder::build`].
    pub fn new(builder: LoaderBuilder<Batch>, columns: Columns) -> candle_core::Result<Self> {
        let loader = builder.transform(move |batch| columns.tensors(batch)).build();
        Ok(Self { loader: loader.map_err(into_candle)?, device: Device::Cpu })
    }

    /// Delivers batches on `device`.
    #[must_use]
    pub fn on(mut self, device: &Device) -> Self {
        self.device = device.clone();
        self
    }

    /// The step that `next` delivers.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.loader.step()
    }

    /// The records that every stream has.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.loader.records()
    }

    /// Where the loader is, to be saved with the model: the next step and a fingerprint of the configuration.
    ///
    /// It counts the batches that the loop received, never those that were prefetched.
    #[must_use]
    pub fn state(&self) -> LoaderState {
        self.loader.state()
    }

    /// Goes on where `state` was saved: the batches from there on are those of a run without a break.
    ///
    /// # Errors
    ///
    /// When the sampler, the seed or the streams are others than when the state was saved; the error says which.
    pub fn resume(&mut self, state: &LoaderState) -> candle_core::Result<()> {
        self.loader.resume(state).map_err(into_candle)
    }

    /// Makes `step` the next one, at the same cost for any distance.
    pub fn seek(&mut self, step: u64) {
        self.loader.seek(step);
    }

    /// Begins an exact evaluation: every record once, in stored order, `batch` records a step, the last batch short.
    /// The training steps go on where they were afterwards.
    ///
    /// # Errors
    ///
    /// When `batch` is 0 or there are no records.
    pub fn pass(&mut self, batch: usize) -> candle_core::Result<TensorPass<'_>> {
        let pass = self.loader.pass(batch).map_err(into_candle)?;
        Ok(TensorPass { pass, device: &self.device })
    }

    /// Begins a pass with a finite sampler of one's own.
    ///
    /// # Errors
    ///
    /// When `sampler` has no end or draws from more records than there are.
    pub fn pass_with(&mut self, sampler: impl Sampler + 'static) -> candle_core::Result<TensorPass<'_>> {
        let pass = self.loader.pass_with(sampler).map_err(into_candle)?;
        Ok(TensorPass { pass, device: &self.device })
    }

    /// Where the time went and what was delivered.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.loader.stats()
    }
}

impl Iterator for TensorLoader {
    type Item = candle_core::Result<TensorBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.loader.next().map(|batch| deliver(batch, &self.device))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.loader.size_hint()
    }
}

/// A finite pass of a [`TensorLoader`]: a number of steps that is known, then the end.
#[must_use = "a pass does nothing until it is iterated"]
#[derive(Debug)]
pub struct TensorPass<'a> {
    pass: Evaluation<'a, TensorBatch>,
    device: &'a Device,
}

impl TensorPass<'_> {
    /// The number of records that the whole pass delivers.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.pass.records()
    }

    /// The number of steps of the whole pass.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.pass.steps()
    }
}

impl Iterator for TensorPass<'_> {
    type Item = candle_core::Result<TensorBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pass.next().map(|batch| deliver(batch, self.device))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.pass.size_hint()
    }
}

fn deliver(batch: loaderx_core::Result<TensorBatch>, device: &Device) -> candle_core::Result<TensorBatch> {
    let batch = batch.map_err(into_candle)?;
    // A batch that is where it should be is handed on as it is.
    if device.is_cpu() { Ok(batch) } else { batch.to_device(device) }
}
