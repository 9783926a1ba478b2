//! What a step delivers, as a function of the step alone. Threads come elsewhere.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::batch::{Batch, Names, Skipped};
use crate::buffer::Allocator;
use crate::error::{Error, ErrorKind, Result};
use crate::sampler::Sampler;
use crate::view::{Column, Request, Source};

/// What a loader does when stored records of a batch are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDamage {
    /// The step delivers the error, which names file and record. The steps after it are delivered as usual.
    #[default]
    Error,
    /// The damaged records are left out of all streams of the batch, which gets shorter by them, and are named
    /// by [`Batch::skipped`] and counted by [`Stats::skipped`](super::Stats::skipped). A batch of damaged
    /// records only is still an error.
    ///
    /// A step stays a function of the step and the stored bytes: every run over the same damaged store delivers
    /// the same batches. A store that was repaired in between delivers the full ones. The records behind a skipped
    /// one move up, and with them the positions that key the random numbers of record maps.
    Skip,
}

/// The collate step of a loader.
pub(super) type Transform<T> = Arc<dyn Fn(Batch) -> Result<T> + Send + Sync>;

/// Everything that decides a step's delivery besides the sampler.
pub(super) struct Plan<T> {
    pub(super) names: Names,
    pub(super) sources: Vec<Arc<dyn Source>>,
    pub(super) seed: u64,
    pub(super) on_damage: OnDamage,
    pub(super) memory: Arc<dyn Allocator>,
    pub(super) transform: Transform<T>,
}

/// A step whose records are known and not yet read.
pub(super) struct Drawn {
    step: u64,
    first_position: usize,
    indices: Vec<u64>,
    /// What the batch will hold, or a bound of it.
    pub(super) bytes: u64,
}

/// A finished step, with what the statistics count.
#[derive(Debug)]
pub(super) struct Delivery<T> {
    pub(super) result: Result<T>,
    pub(super) bytes: u64,
    pub(super) records: u64,
    pub(super) skipped: u64,
}

impl<T> Delivery<T> {
    pub(super) fn failed(error: Error) -> Self {
        Self { result: Err(error), bytes: 0, records: 0, skipped: 0 }
    }
}

impl<T> Plan<T> {
    /// Finds out which records `step` has and how much memory they take.
    pub(super) fn draw(&self, sampler: &dyn Sampler, step: u64) -> Result<Drawn> {
        caught(step, "the sampler", || {
            let mut indices = Vec::with_capacity(sampler.batch_size());
            sampler.draw(step, &mut indices);
            let mut bytes = 0_u64;
            for (name, source) in self.names.iter().zip(&self.sources) {
                let more = source.batch_bytes(&indices);
                // A damaged record must not be an error before the policy for damage was asked.
                let more = match more {
                    Err(error) if error.is_corrupt() && self.on_damage == OnDamage::Skip => 0,
                    more => more.map_err(|error| error.in_stream(name).at_step(step))?,
                };
                bytes = bytes.saturating_add(more);
            }
            Ok(Drawn { step, first_position: sampler.first_position(step), indices, bytes })
        })
    }

    /// Says that the records of `steps` will be read soon.
    pub(super) fn advise(&self, sampler: &dyn Sampler, steps: Range<u64>) {
        let mut indices = Vec::new();
        for step in steps {
            // A hint: what goes wrong here goes wrong again, and is reported, when the step is drawn.
            let _ = caught(step, "asking ahead", || {
                if sampler.steps().is_none_or(|steps| step < steps) {
                    sampler.draw(step, &mut indices);
                    self.sources.iter().for_each(|source| source.advise(&indices));
                }
                Ok(())
            });
        }
    }

    /// Reads the records and runs the transform.
    pub(super) fn produce(&self, drawn: Drawn) -> Delivery<T> {
        let step = drawn.step;
        let batch = match caught(step, "reading a batch", || self.gather(drawn)) {
            Ok(batch) => batch,
            Err(error) => return Delivery::failed(error),
        };
        let (bytes, records) = (batch.bytes(), batch.records() as u64);
        let skipped = batch.skipped.len() as u64;
        let result = caught(step, "the transform", || (self.transform)(batch));
        Delivery { result: result.map_err(|error| error.at_step(step)), bytes, records, skipped }
    }

    fn gather(&self, drawn: Drawn) -> Result<Batch> {
        let Drawn { step, first_position, mut indices, .. } = drawn;
        let mut skipped = Vec::new();
        let columns = match self.columns(step, first_position, &indices) {
            Err(error) if error.is_corrupt() && self.on_damage == OnDamage::Skip => {
                skipped = self.damaged(step, &indices);
                indices.retain(|&index| skipped.iter().all(|skipped| skipped.record != index));
                if indices.is_empty() || skipped.is_empty() {
                    return Err(error);
                }
                self.columns(step, first_position, &indices)?
            }
            columns => columns?,
        };
        Ok(Batch { step, seed: self.seed, indices, names: Arc::clone(&self.names), columns, skipped })
    }

    fn columns(&self, step: u64, first_position: usize, indices: &[u64]) -> Result<Vec<Option<Column>>> {
        let request =
            Request::new(indices).at(self.seed, step).from_position(first_position).memory(&*self.memory);
        let streams = self.names.iter().zip(&self.sources);
        streams
            .map(|(name, source)| {
                let column = source.gather(&request).map_err(|error| error.in_stream(name).at_step(step))?;
                if column.records() != indices.len() {
                    return Err(Error::invalid(format!(
                        "a source gathered {} records, {} were asked for",
                        column.records(),
                        indices.len()
                    ))
                    .in_stream(name)
                    .at_step(step));
                }
                Ok(Some(column))
            })
            .collect()
    }

    /// Tries the records one by one, which only a batch that met damage pays for.
    fn damaged(&self, step: u64, indices: &[u64]) -> Vec<Skipped> {
        let mut damaged: Vec<Skipped> = Vec::new();
        for &record in indices {
            if damaged.iter().any(|known| known.record == record) {
                continue;
            }
            let alone = [record];
            let request = Request::new(&alone).at(self.seed, step);
            for (name, source) in self.names.iter().zip(&self.sources) {
                if let Err(error) = source.gather(&request)
                    && error.is_corrupt()
                {
                    let error = Arc::new(error.for_record(record).in_stream(name).at_step(step));
                    damaged.push(Skipped { record, stream: name.clone(), error });
                    break;
                }
            }
        }
        damaged
    }
}

/// Runs code of users; a panic becomes an error of this step.
fn caught<R>(step: u64, what: &str, run: impl FnOnce() -> Result<R>) -> Result<R> {
    // Nothing of what `run` changes is looked at again after a panic: its batch is gone.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let text = format!("{what} panicked: {}", panic_text(&*payload));
        // A payload whose drop panics would end the thread after all.
        std::mem::forget(payload);
        Err(Error::new(ErrorKind::Panicked, text).at_step(step))
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::buffer::Vecs;

    /// Three steps, of which the second cannot be drawn; notes what is asked of it.
    #[derive(Default)]
    struct Shaky(Mutex<Vec<u64>>);

    impl Sampler for Shaky {
        fn len(&self) -> u64 {
            3
        }

        fn batch_size(&self) -> usize {
            1
        }

        fn draw_slice(&self, step: u64, _positions: Range<usize>, out: &mut Vec<u64>) {
            self.0.lock().unwrap().push(step);
            assert_ne!(step, 1, "shaken");
            out.clear();
        }

        fn steps(&self) -> Option<u64> {
            Some(3)
        }

        fn describe(&self) -> String {
            "shaky".into()
        }
    }

    #[test]
    fn asking_ahead_passes_over_what_panics_and_ends_with_the_sampler() {
        let plan = Plan {
            names: Arc::new([]),
            sources: Vec::new(),
            seed: 0,
            on_damage: OnDamage::Error,
            memory: Arc::new(Vecs),
            transform: Arc::new(Ok),
        };
        let sampler = Shaky::default();
        plan.advise(&sampler, 0..5);
        assert_eq!(*sampler.0.lock().unwrap(), [0, 1, 2]);
    }
}
