use super::random::{Domain, Stream};
use super::{Sampler, check_batch, clip, prepare};
use crate::error::Result;
use std::ops::Range;

/// Uniform draws with replacement: each index of each step is any record, with exactly the same probability.
///
/// The draws come from a counter-based generator, keyed by (seed, step) and indexed by the position in the batch,
/// and are bounded without bias by Lemire's multiplication with rejection.
///
/// ```
/// use loaderx_core::sampler::{Iid, Sampler};
///
/// let (mut once, mut again) = (vec![], vec![]);
/// Iid::new(1_000, 64, 7)?.draw(u64::MAX, &mut once);
/// Iid::new(1_000, 64, 7)?.draw(u64::MAX, &mut again);
/// assert_eq!(once, again);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Iid {
    len: u64,
    batch: usize,
    seed: u64,
}

impl Iid {
    /// A sampler over `len` records, `batch` indices a step; `seed` decides which.
    ///
    /// # Errors
    ///
    /// When `batch` is 0 or exceeds `len`.
    pub fn new(len: u64, batch: usize, seed: u64) -> Result<Self> {
        check_batch(len, batch)?;
        Ok(Self { len, batch, seed })
    }
}

impl Sampler for Iid {
    fn len(&self) -> u64 {
        self.len
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch);
        Stream::new(self.seed, Domain::Iid, step).fill_below(self.len, start as u64, prepare(out, count));
    }

    fn batch_len(&self, _step: u64) -> usize {
        self.batch
    }

    fn describe(&self) -> String {
        format!("iid(len={}, batch={}, seed={})", self.len, self.batch, self.seed)
    }
}
