use super::{Sampler, clip};
use crate::error::{Error, Result};
use std::ops::Range;

/// One rank's part of a sampler: a contiguous slice of each step's global batch.
///
/// The sampler's batch is the global one. Of a batch of `n` indices each of `world` ranks takes `n / world`, and
/// the first `n mod world` ranks one more, in rank order; so the ranks' slices laid end to end are the global
/// batch, no record is given to two ranks, all ranks have the same number of steps, and another world size with
/// the same global batch leaves the global order as it is. A slice costs its own length only.
///
/// A short batch ([`Tail::Short`](super::Tail::Short), the end of a [`Pass`](super::Pass)) of fewer than `world`
/// records leaves the last ranks with an empty one at that step.
///
/// ```
/// use loaderx_core::sampler::{Pass, Sampler};
///
/// // 10 records on 4 ranks in one global batch: 3 + 3 + 2 + 2.
/// let mut out = vec![];
/// Pass::new(10, 12)?.sharded(1, 4)?.draw(0, &mut out);
/// assert_eq!(out, [3, 4, 5]);
/// Pass::new(10, 12)?.sharded(3, 4)?.draw(0, &mut out);
/// assert_eq!(out, [8, 9]);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sharded<S> {
    inner: S,
    rank: usize,
    world: usize,
}

impl<S: Sampler> Sharded<S> {
    pub(super) fn new(inner: S, rank: usize, world: usize) -> Result<Self> {
        if rank >= world {
            return Err(Error::invalid(format!("there is no rank {rank} among {world} ranks"))
                .with_hint("ranks count from 0 to world - 1"));
        }
        let batch = inner.batch_size();
        if world > batch {
            return Err(Error::invalid(format!(
                "a global batch of {batch} records leaves some of {world} ranks empty"
            ))
            .with_hint("the sampler's batch is the global one: use at least one record for each rank"));
        }
        Ok(Self { inner, rank, world })
    }

    /// This rank, counted from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub fn world(&self) -> usize {
        self.world
    }

    /// The sampler of the global batches.
    #[must_use]
    pub fn global(&self) -> &S {
        &self.inner
    }

    /// The positions of this rank in a global batch of `batch` indices.
    fn slice(&self, batch: usize) -> Range<usize> {
        let (share, more) = (batch / self.world, batch % self.world);
        let start = self.rank * share + self.rank.min(more);
        start..start + share + usize::from(self.rank < more)
    }
}

impl<S: Sampler> Sampler for Sharded<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn batch_size(&self) -> usize {
        self.slice(self.inner.batch_size()).len()
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let slice = self.slice(self.inner.batch_len(step));
        let (start, count) = clip(&positions, slice.len());
        let first = slice.start + start;
        self.inner.draw_slice(step, first..first + count, out);
    }

    fn batch_len(&self, step: u64) -> usize {
        self.slice(self.inner.batch_len(step)).len()
    }

    fn first_position(&self, step: u64) -> usize {
        self.inner.first_position(step) + self.slice(self.inner.batch_len(step)).start
    }

    fn steps(&self) -> Option<u64> {
        self.inner.steps()
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        self.inner.steps_per_cycle()
    }

    fn describe(&self) -> String {
        format!("{} shard {} of {}", self.inner.describe(), self.rank, self.world)
    }

    fn describe_global(&self) -> String {
        self.inner.describe_global()
    }
}
