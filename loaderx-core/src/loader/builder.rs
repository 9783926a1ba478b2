use std::sync::Arc;

use super::batch::Batch;
use super::plan::{OnDamage, Plan, Transform};
use super::state::{Fingerprint, LoaderState};
use super::worker::Limits;
use super::{Loader, end_of};
use crate::buffer::{Allocator, Vecs};
use crate::error::{Error, ErrorKind, Result};
use crate::sampler::Sampler;
use crate::view::Source;

/// Steps that are prepared ahead for each worker unless [`LoaderBuilder::prefetch`] says otherwise.
const PREFETCH_PER_WORKER: usize = 2;

/// Most workers unless [`LoaderBuilder::workers`] says otherwise.
const DEFAULT_WORKERS: usize = 4;

const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Puts a [`Loader`] together; made by [`Loader::builder`].
#[must_use = "a builder does nothing until `build`"]
pub struct LoaderBuilder<T = Batch> {
    streams: Vec<(String, Arc<dyn Source>)>,
    sampler: Option<Arc<dyn Sampler>>,
    seed: u64,
    workers: usize,
    prefetch: Option<usize>,
    max_bytes: u64,
    on_damage: OnDamage,
    memory: Arc<dyn Allocator>,
    resume: Option<LoaderState>,
    transform: Transform<T>,
}

/// A clone describes the same loader; the streams, the sampler and the transform are shared.
impl<T> Clone for LoaderBuilder<T> {
    fn clone(&self) -> Self {
        Self {
            streams: self.streams.clone(),
            sampler: self.sampler.clone(),
            seed: self.seed,
            workers: self.workers,
            prefetch: self.prefetch,
            max_bytes: self.max_bytes,
            memory: Arc::clone(&self.memory),
            on_damage: self.on_damage,
            resume: self.resume.clone(),
            transform: Arc::clone(&self.transform),
        }
    }
}

impl LoaderBuilder<Batch> {
    pub(super) fn new() -> Self {
        // The parallelism that affinity and cgroup leave to this process; one core stays the training loop's.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            streams: Vec::new(),
            sampler: None,
            seed: 0,
            workers: cores.saturating_sub(1).clamp(1, DEFAULT_WORKERS),
            prefetch: None,
            max_bytes: DEFAULT_MAX_BYTES,
            on_damage: OnDamage::Error,
            memory: Arc::new(Vecs),
            resume: None,
            transform: Arc::new(Ok),
        }
    }

    /// Runs `transform` on each batch in the workers; the loader then delivers what it returns.
    ///
    /// This is the collate step: make tensors, pad, tokenise. It has to be a function of the batch alone, since
    /// it runs for several steps at the same time and ahead of the training loop; random numbers keyed by
    /// [`Batch::seed`] and [`Batch::step`] keep it so. An error it returns is delivered at its step, as
    /// [`ErrorKind::Callback`] with the error as its source; so is a panic, as [`ErrorKind::Panicked`]. Any error
    /// type will do; a closure that uses `?` has to name one.
    ///
    /// ```
    /// # use loaderx_core::{DType, DenseWriter, Codec, Loader, Result, sampler::Sequential};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let writer = DenseWriter::create(dir.path().join("x"), DType::U8, &[], Codec::Raw)?;
    /// # writer.append(vec![1_u8, 2, 3, 4])?;
    /// # let numbers = writer.finish()?;
    /// let mut sums = Loader::builder()
    ///     .stream("number", numbers)
    ///     .sampler(Sequential::new(4, 2)?)
    ///     .transform(|mut batch| -> Result<u32> {
    ///         let (numbers, _shape) = batch.take_dense("number")?.into_vec::<u8>()?;
    ///         Ok(numbers.iter().map(|&n| u32::from(n)).sum::<u32>())
    ///     })
    ///     .build()?;
    /// assert_eq!(sums.next().unwrap()?, 3);
    /// assert_eq!(sums.next().unwrap()?, 7);
    /// # Result::<()>::Ok(())
    /// ```
    pub fn transform<T, E>(
        self,
        transform: impl Fn(Batch) -> Result<T, E> + Send + Sync + 'static,
    ) -> LoaderBuilder<T>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let transform: Transform<T> = Arc::new(move |batch| {
            transform(batch).map_err(|error| {
                Error::new(ErrorKind::Callback, "the transform returned an error").caused_by(error)
            })
        });
        let Self { streams, sampler, seed, workers, prefetch, max_bytes, on_damage, memory, resume, .. } =
            self;
        LoaderBuilder {
            streams,
            sampler,
            seed,
            workers,
            prefetch,
            max_bytes,
            on_damage,
            memory,
            resume,
            transform,
        }
    }
}

impl<T: Send + 'static> LoaderBuilder<T> {
    /// Adds a stream: each batch has a column of this name, gathered from `source`.
    ///
    /// The batch's columns are in the order in which the streams were added. All streams have one length.
    pub fn stream(mut self, name: impl Into<String>, source: impl Source + 'static) -> Self {
        self.streams.push((name.into(), Arc::new(source)));
        self
    }

    /// Sets the sampler: which records each step has.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampler = Some(Arc::new(sampler));
        self
    }

    /// The sampler, once it was set.
    #[must_use]
    pub fn current_sampler(&self) -> Option<&Arc<dyn Sampler>> {
        self.sampler.as_ref()
    }

    /// Sets the seed that keys the random numbers of record maps, together with step and position. 0 by default.
    ///
    /// It does not change the order of the records: that is the sampler's seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of worker threads. They live as long as the loader.
    ///
    /// By default one less than the cores that affinity and cgroup leave to this process, between 1 and 4.
    /// 0 starts no thread: `next` does the work itself. The batches are the same for any number.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the number of steps that are prepared ahead, those being gathered among them; two for each worker by
    /// default. Without workers nothing is prepared ahead.
    ///
    /// Fewer steps than workers leave some workers idle.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.prefetch = Some(batches);
        self
    }

    /// Sets the most bytes that prepared batches hold, those being gathered among them; 1 GiB by default.
    ///
    /// What counts is the batch as it is gathered, before the transform. A single batch larger than the cap is
    /// gathered all the same, with no other beside it.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets where the batches' memory comes from: typed vectors by default, which `into_vec` moves out.
    ///
    /// A [`Pool`](crate::buffer::Pool) takes the memory of dropped batches back, which pays for batches of many
    /// MiB: fresh memory of that size costs more than the copy into it.
    pub fn memory(mut self, allocator: impl Allocator + 'static) -> Self {
        self.memory = Arc::new(allocator);
        self
    }

    /// Sets what happens when stored records are damaged: the step is an error (the default), or they are skipped.
    pub fn on_damage(mut self, policy: OnDamage) -> Self {
        self.on_damage = policy;
        self
    }

    /// Starts where `state` was saved instead of at step 0.
    ///
    /// # Errors
    ///
    /// [`LoaderBuilder::build`] refuses a state that belongs to another configuration, see [`Loader::resume`].
    pub fn resume(mut self, state: &LoaderState) -> Self {
        self.resume = Some(state.clone());
        self
    }

    /// Checks the configuration, starts the workers and begins to prepare batches.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::InvalidArgument`] without streams or sampler, for two streams of one name or of different
    ///   lengths, for a sampler over more records than there are, and for a prefetch of 0 with workers;
    /// - [`ErrorKind::StateMismatch`] for a state of another configuration;
    /// - [`ErrorKind::Io`] when a thread cannot be started.
    pub fn build(self) -> Result<Loader<T>> {
        let records = check_streams(&self.streams)?;
        let sampler = self.sampler.ok_or_else(|| {
            Error::invalid("the loader has no sampler").with_hint("add one with `sampler`, such as Cyclic")
        })?;
        if sampler.len() > records {
            return Err(Error::invalid(format!(
                "the sampler draws from {} records, the streams have {records}",
                sampler.len()
            )));
        }
        if self.prefetch == Some(0) && self.workers > 0 {
            return Err(Error::invalid(format!("{} workers cannot prepare 0 batches ahead", self.workers))
                .with_hint("use a prefetch of at least 1, or workers(0) to work without prefetch"));
        }
        let fingerprint = Fingerprint {
            seed: self.seed,
            sampler: sampler.describe_global(),
            streams: self.streams.iter().map(|(name, source)| (name.clone(), source.describe())).collect(),
        };
        let start = match &self.resume {
            None => 0,
            Some(state) => {
                state.require(&fingerprint)?;
                state.step()
            }
        };
        let limits = Limits {
            workers: self.workers,
            prefetch: self.prefetch.unwrap_or(self.workers.saturating_mul(PREFETCH_PER_WORKER)),
            max_bytes: self.max_bytes,
        };
        let (names, sources): (Vec<_>, Vec<_>) = self.streams.into_iter().unzip();
        let plan = Plan {
            names: names.into(),
            sources,
            seed: self.seed,
            on_damage: self.on_damage,
            memory: self.memory,
            transform: self.transform,
        };
        let end = end_of(&*sampler);
        Loader::start(plan, limits, sampler, records, Arc::new(fingerprint), start.min(end), end)
    }
}

/// Returns the records that every stream has.
fn check_streams(streams: &[(String, Arc<dyn Source>)]) -> Result<u64> {
    let Some((first, source)) = streams.first() else {
        return Err(
            Error::invalid("the loader has no stream").with_hint("add one with `stream(name, source)`")
        );
    };
    let records = source.len();
    for (number, (name, source)) in streams.iter().enumerate() {
        if streams.iter().take(number).any(|(earlier, _)| earlier == name) {
            return Err(Error::invalid(format!("two streams have the name {name:?}")));
        }
        if source.len() != records {
            return Err(Error::invalid(format!(
                "stream {first:?} has {records} records, stream {name:?} has {}",
                source.len()
            ))
            .with_hint("all streams are gathered at the same indices, so they need the same length"));
        }
    }
    Ok(records)
}

impl<T> std::fmt::Debug for LoaderBuilder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.streams.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("LoaderBuilder")
            .field("streams", &names)
            .field("sampler", &self.sampler.as_ref().map(|sampler| sampler.describe()))
            .field("seed", &self.seed)
            .field("workers", &self.workers)
            .field("prefetch", &self.prefetch)
            .field("max_bytes", &self.max_bytes)
            .field("on_damage", &self.on_damage)
            .finish_non_exhaustive()
    }
}
