use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loaderx_core::loader::{Loader, LoaderBuilder, LoaderState};
use loaderx_core::sampler::Sampler;
use loaderx_core::{Error, Result};

use super::part::Part;

/// The loader that all iterators of a `StepLoader` share, on whatever device they make their tensors.
pub(super) struct Stream<T> {
    recipe: LoaderBuilder<T>,
    sampler: Arc<dyn Sampler>,
    /// Steps of an epoch.
    steps: u64,
    /// Items of the first epoch.
    items: u64,
    position: Mutex<Position<T>>,
}

struct Position<T> {
    loader: Result<Loader<T>>,
    /// Where the next iterator begins.
    next: u64,
}

impl<T: Send + 'static> Stream<T> {
    pub(super) fn new(recipe: LoaderBuilder<T>, steps: Option<u64>) -> Result<Self> {
        let loader = recipe.clone().build()?;
        let Some(sampler) = recipe.current_sampler().cloned() else {
            return Err(Error::invalid("the loader has no sampler"));
        };
        let finite = sampler.steps();
        let steps = match (steps, finite) {
            (Some(0), _) => return Err(Error::invalid("an epoch of 0 steps never ends a training")),
            (Some(steps), Some(whole)) if steps != whole => {
                let message = format!("{} has {whole} steps, not {steps}", sampler.describe());
                return Err(Error::invalid(message).with_hint("a finite sampler's epoch is the whole of it"));
            }
            (Some(steps), _) => steps,
            (None, Some(whole)) => whole,
            (None, None) => sampler
                .steps_per_cycle()
                .unwrap_or_else(|| sampler.len().div_ceil(sampler.batch_size().max(1) as u64)),
        };
        let next = loader.step();
        Ok(Self::with_loader(recipe, sampler, steps, Ok(loader), next))
    }

    fn with_loader(
        recipe: LoaderBuilder<T>,
        sampler: Arc<dyn Sampler>,
        steps: u64,
        loader: Result<Loader<T>>,
        next: u64,
    ) -> Self {
        let items = items(&*sampler, 0..steps);
        Self { recipe, sampler, steps, items, position: Mutex::new(Position { loader, next }) }
    }

    /// The stream of a share of each batch: `start..end` of this stream's items.
    pub(super) fn slice(&self, start: usize, end: usize) -> Self {
        let part = Part::new(Arc::clone(&self.sampler), start as u64, end as u64, self.items);
        let next = self.lock().next;
        let (batch, whole) = (part.batch_size(), self.sampler.batch_size());
        let sampler: Arc<dyn Sampler> = Arc::new(part);
        let recipe = self.recipe.clone().sampler(Arc::clone(&sampler));
        let loader = if batch == 0 {
            Err(Error::invalid(format!(
                "items {start}..{end} of {} are less than one record of each batch of {whole}",
                self.items
            ))
            .with_hint("the sampler's batch is that of all devices together: make it larger"))
        } else {
            recipe.clone().build()
        };
        Self::with_loader(recipe, sampler, self.steps, loader, next)
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// The items of a step.
    pub(super) fn items_of(&self, steps: Range<u64>) -> u64 {
        items(&*self.sampler, steps)
    }

    fn is_finite(&self) -> bool {
        self.sampler.steps().is_some()
    }

    /// Leaves `epochs` epochs out, counted from step 0.
    pub(super) fn skip(&self, epochs: u64) {
        if !self.is_finite() {
            self.lock().next = epochs.saturating_mul(self.steps);
        }
    }

    /// The steps of the epoch that begins now: all of it, or the rest of the one that a saved state is in.
    pub(super) fn begin(&self) -> Epoch {
        let mut position = self.lock();
        let first = position.next;
        let start = if self.is_finite() { 0 } else { first - first % self.steps };
        let end = start.saturating_add(self.steps);
        position.next = if self.is_finite() { 0 } else { end };
        Epoch { start, next: first, end }
    }

    /// What `step` delivers; `None` when it has no records.
    pub(super) fn receive(&self, step: u64) -> Option<Result<T>> {
        let mut position = self.lock();
        let loader = match &mut position.loader {
            Ok(loader) => loader,
            Err(error) => return Some(Err(Error::new(error.kind(), error.to_string()))),
        };
        if self.sampler.batch_len(step) == 0 {
            // The last devices' share of the short last batch. A pass ends early there; in training all devices
            // have to make the step.
            return (!self.is_finite()).then(|| {
                Err(Error::invalid(format!(
                    "{} leaves step {step} without a record",
                    self.sampler.describe()
                ))
                .with_hint("share the batches of a sampler with Tail::Drop or Tail::Wrap"))
            });
        }
        // Does nothing unless another iterator was served meanwhile.
        loader.seek(step);
        loader.next()
    }

    /// The state after the batch that was delivered last, or the start of the first epoch.
    pub(super) fn state(&self) -> Result<LoaderState> {
        match &self.lock().loader {
            Ok(loader) => Ok(loader.state()),
            Err(error) => Err(Error::new(error.kind(), error.to_string())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Position<T>> {
        // The loader is never left half-changed: it delivers panics of others as errors.
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The steps of one epoch.
pub(super) struct Epoch {
    pub(super) start: u64,
    /// Later than the start when a saved state is within the epoch.
    pub(super) next: u64,
    pub(super) end: u64,
}

fn items(sampler: &dyn Sampler, steps: Range<u64>) -> u64 {
    steps.map(|step| sampler.batch_len(step) as u64).sum()
}
