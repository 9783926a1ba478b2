use super::{Sampler, clip, prepare};
use crate::error::{Error, Result};
use std::ops::Range;

/// One finite pass: every record exactly once, in stored order, the last batch short.
///
/// The number of steps is known ([`Sampler::steps`]); behind them the batches are empty. Nothing is padded or
/// repeated, so sums over a pass divide by [`Sampler::len`]. The batch may exceed the number of records: then
/// the only batch is short.
///
/// ```
/// use loaderx_core::sampler::{Pass, Sampler};
///
/// let pass = Pass::new(10, 4)?;
/// assert_eq!(pass.steps(), Some(3));
/// let mut out = vec![];
/// pass.draw(2, &mut out);
/// assert_eq!(out, [8, 9]);
/// pass.draw(3, &mut out);
/// assert!(out.is_empty());
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pass {
    len: u64,
    batch: usize,
}

impl Pass {
    /// A pass over `len` records, at most `batch` indices a step.
    ///
    /// # Errors
    ///
    /// When `batch` or `len` is 0.
    pub fn new(len: u64, batch: usize) -> Result<Self> {
        if batch == 0 || len == 0 {
            return Err(Error::invalid(format!(
                "a pass in batches of {batch} over {len} records delivers nothing"
            )));
        }
        Ok(Self { len, batch })
    }
}

impl Sampler for Pass {
    fn len(&self) -> u64 {
        self.len
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch_len(step));
        // Within the pass the product is below `len`; behind it nothing is written.
        let first = step.saturating_mul(self.batch as u64).saturating_add(start as u64);
        for (slot, index) in prepare(out, count).iter_mut().zip(first..) {
            *slot = index;
        }
    }

    fn batch_len(&self, step: u64) -> usize {
        let left = self.len.saturating_sub(step.saturating_mul(self.batch as u64));
        usize::try_from(left).map_or(self.batch, |left| left.min(self.batch))
    }

    fn steps(&self) -> Option<u64> {
        Some(self.len.div_ceil(self.batch as u64))
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        self.steps()
    }

    fn describe(&self) -> String {
        format!("pass(len={}, batch={})", self.len, self.batch)
    }
}
