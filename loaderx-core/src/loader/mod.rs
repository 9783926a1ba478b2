//! The loader: batches in step order, prepared ahead by worker threads, resumed exactly.
//!
//! A [`Loader`] puts named streams ([`Source`](crate::view::Source)s, such as [`Dense`](crate::Dense)) and a
//! [`Sampler`] together and is an endless iterator of batches. What step `n` delivers depends on the
//! configuration, the seed and `n` alone:
//!
//! - batches arrive in step order, the same ones for any number of workers and any prefetch;
//! - [`Loader::state`] is the number of the next step and a fingerprint of the configuration, so saving it costs
//!   nothing and [`Loader::resume`] goes on at once, without replay;
//! - [`Loader::seek`] jumps to any step.
//!
//! ```
//! use loaderx_core::sampler::Cyclic;
//! use loaderx_core::{Codec, DType, DenseWriter, Loader};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = |name| dir.path().join(name);
//! let images = DenseWriter::create(path("images"), DType::U8, &[2, 2], Codec::Raw)?;
//! images.append((0..40).collect::<Vec<u8>>())?; // 10 records
//! let labels = DenseWriter::create(path("labels"), DType::I64, &[], Codec::Raw)?;
//! labels.append((0..10).collect::<Vec<i64>>())?;
//!
//! let mut loader = Loader::builder()
//!     .stream("image", images.finish()?)
//!     .stream("label", labels.finish()?)
//!     .sampler(Cyclic::new(10, 4, 42)?)
//!     .workers(2)
//!     .build()?;
//! for batch in (&mut loader).take(3) {
//!     let mut batch = batch?;
//!     let (pixels, shape) = batch.take_dense("image")?.into_vec::<u8>()?;
//!     assert_eq!((pixels.len(), shape), (16, vec![4, 2, 2]));
//! }
//!
//! // A checkpoint, and another loader that goes on from it.
//! let saved = loader.state().to_bytes()?;
//! let expected = loader.next().unwrap()?;
//! # let (images, labels) = (loaderx_core::Dense::open(path("images"))?, loaderx_core::Dense::open(path("labels"))?);
//! let mut resumed = Loader::builder()
//!     .stream("image", images)
//!     .stream("label", labels)
//!     .sampler(Cyclic::new(10, 4, 42)?)
//!     .workers(0)
//!     .resume(&loaderx_core::LoaderState::from_bytes(&saved)?)
//!     .build()?;
//! let batch = resumed.next().unwrap()?;
//! assert_eq!(batch.step(), 3);
//! assert_eq!(batch.indices(), expected.indices());
//! # Ok::<(), loaderx_core::Error>(())
//! ```
//!
//! # Errors and panics
//!
//! What goes wrong at a step is delivered at that step: a damaged record, an error of the transform, a panic in
//! the sampler, a source, a record map or the transform. The loader is not broken by it; the next call delivers
//! the next step. An error that was delivered counts as a delivered step: [`Loader::seek`] back to
//! [`Error::step`] to try again. [`OnDamage::Skip`] leaves damaged records out instead.
//!
//! # Threads and memory
//!
//! Workers start with [`LoaderBuilder::build`] and end with the loader. They take whole steps, and wait when
//! [`prefetch`](LoaderBuilder::prefetch) batches or [`max_bytes`](LoaderBuilder::max_bytes) bytes are prepared.
//! A drop at any moment ends them; it waits for workers at most 50 ms, so one that is inside a transform of
//! longer than that ends on its own after it. No state is global: no thread pool, no random numbers.
//!
//! After a `fork` the child has none of the parent's threads. The child's copy of the loader says so with an error
//! of [`ErrorKind::Closed`](crate::ErrorKind::Closed); build the loader after the fork.
//!
//! Stores larger than memory are read ahead: while a worker's steps make the disk read, or those of the consumer's
//! thread where there are no workers, it asks for the records of the next steps before it gathers its own
//! ([`Source::advise`](crate::view::Source::advise)). It stops by itself once the data is in memory. On systems
//! other than Linux, where the reads cannot be seen, it never begins.
//!
//! # Evaluation
//!
//! [`Loader::pass`] delivers every record exactly once, in stored order, the last batch short, then ends. It
//! uses the same workers and leaves the training steps where they were.

mod batch;
mod builder;
mod evaluation;
mod plan;
mod protocol;
mod readahead;
mod ring;
mod state;
mod stats;
mod sync;
mod worker;

pub use batch::{Batch, Skipped};
pub use builder::LoaderBuilder;
pub use evaluation::Evaluation;
pub use plan::OnDamage;
pub use state::LoaderState;
pub use stats::Stats;

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::sampler::{Pass, Sampler};
use plan::{Delivery, Plan};
use readahead::{LEAD, Readahead, thread_bytes_read};
use state::Fingerprint;
use worker::{Limits, Workers};

/// Delivers the steps of a sampler, in order: an iterator of `Result<T>`.
///
/// `T` is [`Batch`], or what the [transform](LoaderBuilder::transform) makes of it. The iterator is endless unless
/// the sampler is finite; it ends before step `u64::MAX` in any case. See the [module](self) for the rules.
pub struct Loader<T = Batch> {
    // Before the plan: dropping it ends the threads that share the plan.
    workers: Option<Workers<T>>,
    plan: Arc<Plan<T>>,
    sampler: Arc<dyn Sampler>,
    /// The sampler of the pass that is under way, or was left without being dropped.
    detour: Option<Arc<dyn Sampler>>,
    fingerprint: Arc<Fingerprint>,
    records: u64,
    next: u64,
    end: u64,
    started: Instant,
    stats: Stats,
    /// For batches that the consumer's own thread makes.
    readahead: Readahead<fn() -> Option<u64>>,
}

/// The step at which the sampler's course ends.
fn end_of(sampler: &dyn Sampler) -> u64 {
    sampler.steps().unwrap_or(u64::MAX)
}

fn hint(next: u64, end: u64) -> (usize, Option<usize>) {
    match usize::try_from(end.saturating_sub(next)) {
        Ok(left) => (left, Some(left)),
        Err(_) => (usize::MAX, None),
    }
}

impl Loader<Batch> {
    /// Begins to describe a loader.
    pub fn builder() -> LoaderBuilder<Batch> {
        LoaderBuilder::new()
    }
}

impl<T: Send + 'static> Loader<T> {
    fn start(
        plan: Plan<T>,
        limits: Limits,
        sampler: Arc<dyn Sampler>,
        records: u64,
        fingerprint: Arc<Fingerprint>,
        next: u64,
        end: u64,
    ) -> Result<Self> {
        let started = Instant::now();
        let plan = Arc::new(plan);
        let workers = match limits.workers {
            0 => None,
            _ => Some(Workers::start(&plan, limits, Arc::clone(&sampler), next, end)?),
        };
        Ok(Self {
            workers,
            plan,
            sampler,
            detour: None,
            fingerprint,
            records,
            next,
            end,
            started,
            stats: Stats::default(),
            readahead: Readahead::new(thread_bytes_read),
        })
    }
}

impl<T> Loader<T> {
    /// The step that `next` delivers.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.next
    }

    /// The records that every stream has.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The sampler.
    #[must_use]
    pub fn sampler(&self) -> &dyn Sampler {
        &*self.sampler
    }

    /// The number of worker threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.as_ref().map_or(0, Workers::count)
    }

    /// Where the loader is, to be saved with the model. Costs nanoseconds.
    #[must_use]
    pub fn state(&self) -> LoaderState {
        LoaderState::new(self.next, Arc::clone(&self.fingerprint))
    }

    /// Goes on where `state` was saved. What was prepared is thrown away.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StateMismatch`](crate::ErrorKind::StateMismatch) when the sampler (its rank and world size
    /// apart), the seed, the streams' names or their formats are others than when the state was saved; the error
    /// says which. The loader is unchanged then.
    pub fn resume(&mut self, state: &LoaderState) -> Result<()> {
        state.require(&self.fingerprint)?;
        self.seek(state.step());
        Ok(())
    }

    /// Makes `step` the next one. What was prepared is thrown away, unless `step` is the next one already.
    ///
    /// Costs the same for any distance. A step behind the end of a finite sampler is its end.
    pub fn seek(&mut self, step: u64) {
        let step = step.min(self.end);
        if step != self.next || self.detour.is_some() {
            self.next = step;
            self.detour = None;
            self.steer();
        }
    }

    /// Begins a pass over every record exactly once, in stored order, `batch` records a step, the last one short.
    ///
    /// The pass runs over all records of the streams, whatever part of them the sampler draws from;
    /// [`Loader::pass_with`] takes another order or part. Prepared training batches are thrown away and prepared
    /// again afterwards; [`Loader::step`] and [`Loader::state`] do not change.
    ///
    /// ```
    /// # use loaderx_core::{DType, DenseWriter, Codec, Loader, sampler::Cyclic};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let writer = DenseWriter::create(dir.path().join("x"), DType::U8, &[], Codec::Raw)?;
    /// # writer.append((0..10).collect::<Vec<u8>>())?;
    /// # let mut loader =
    /// #     Loader::builder().stream("x", writer.finish()?).sampler(Cyclic::new(10, 5, 1)?).build()?;
    /// let pass = loader.pass(4)?;
    /// assert_eq!((pass.records(), pass.len()), (10, 3));
    /// let mut seen = Vec::new();
    /// for batch in pass {
    ///     seen.extend_from_slice(batch?.indices());
    /// }
    /// assert_eq!(seen, (0..10).collect::<Vec<u64>>());
    /// # Ok::<(), loaderx_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When `batch` is 0 or there are no records.
    pub fn pass(&mut self, batch: usize) -> Result<Evaluation<'_, T>> {
        self.pass_with(Pass::new(self.records, batch)?)
    }

    /// Begins a pass with a finite sampler of one's own, such as a rank's part of a
    /// [`Pass`].
    ///
    /// # Errors
    ///
    /// When `sampler` has no end or draws from more records than there are.
    pub fn pass_with(&mut self, sampler: impl Sampler + 'static) -> Result<Evaluation<'_, T>> {
        let Some(steps) = sampler.steps() else {
            return Err(Error::invalid(format!("{} has no end, a pass needs one", sampler.describe()))
                .with_hint("use sampler::Pass"));
        };
        if sampler.len() > self.records {
            return Err(Error::invalid(format!(
                "the sampler draws from {} records, the streams have {}",
                sampler.len(),
                self.records
            )));
        }
        let sampler: Arc<dyn Sampler> = Arc::new(sampler);
        self.detour = Some(Arc::clone(&sampler));
        if let Some(workers) = &self.workers {
            workers.seek(Arc::clone(&sampler), 0, steps);
        }
        Ok(Evaluation::new(self, sampler, steps))
    }

    /// Where the time went and what was delivered since the loader was built, passes included.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { elapsed: self.started.elapsed(), ..self.stats };
        if let Some(depth) = self.workers.as_ref().map(Workers::depth) {
            stats.queued = depth.ready;
            stats.bytes_in_flight = depth.bytes;
            stats.peak_bytes_in_flight = depth.peak_bytes;
            stats.waiting_for_consumer = depth.starved;
        }
        stats
    }

    fn end_detour(&mut self) {
        if self.detour.take().is_some() {
            self.steer();
        }
    }

    /// Sends the workers to the training step that comes next.
    fn steer(&self) {
        if let Some(workers) = &self.workers {
            workers.seek(Arc::clone(&self.sampler), self.next, self.end);
        }
    }

    /// Waits for a step: of the detour when there is one. The workers are on their way to it already.
    fn receive(&mut self, step: u64) -> Option<Result<T>> {
        let asked = Instant::now();
        let delivery = match &self.workers {
            Some(workers) => workers.next()?,
            None => {
                let sampler = self.detour.as_ref().unwrap_or(&self.sampler);
                self.plan.advise(&**sampler, self.readahead.steps(step, LEAD));
                let drawn = self.plan.draw(&**sampler, step);
                drawn.map_or_else(Delivery::failed, |drawn| self.plan.produce(drawn))
            }
        };
        let stats = &mut self.stats;
        stats.waiting_for_data += asked.elapsed();
        stats.batches += 1;
        stats.records += delivery.records;
        stats.bytes += delivery.bytes;
        stats.skipped += delivery.skipped;
        stats.errors += u64::from(delivery.result.is_err());
        Some(delivery.result)
    }
}

impl<T> Iterator for Loader<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        // A pass that was forgotten instead of dropped must not leave its steps to the training loop.
        self.end_detour();
        if self.next >= self.end {
            return None;
        }
        let delivery = self.receive(self.next)?;
        self.next += 1;
        Some(delivery)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        hint(self.next, self.end)
    }
}

impl<T> std::fmt::Debug for Loader<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader")
            .field("streams", &self.plan.names)
            .field("sampler", &self.sampler.describe())
            .field("step", &self.next)
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}
