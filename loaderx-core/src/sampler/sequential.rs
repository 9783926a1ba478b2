use super::random::low;
use super::{Sampler, check_batch, clip, prepare};
use crate::error::Result;
use std::ops::Range;

/// Records in stored order, for ever: index `i` of a step is `(step * batch + i) mod len`.
///
/// The last batch of a round runs on into the next one, so every batch is full. For one finite round with a
/// short last batch use [`Pass`](super::Pass).
///
/// ```
/// use loaderx_core::sampler::{Sampler, Sequential};
///
/// let mut out = vec![];
/// Sequential::new(10, 4)?.draw(2, &mut out);
/// assert_eq!(out, [8, 9, 0, 1]);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequential {
    len: u64,
    batch: usize,
}

impl Sequential {
    /// A sampler over `len` records, `batch` indices a step.
    ///
    /// # Errors
    ///
    /// When `batch` is 0 or exceeds `len`.
    pub fn new(len: u64, batch: usize) -> Result<Self> {
        check_batch(len, batch)?;
        Ok(Self { len, batch })
    }
}

impl Sampler for Sequential {
    fn len(&self) -> u64 {
        self.len
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch);
        let position = u128::from(step) * self.batch as u128 + start as u128;
        let mut next = low(position % u128::from(self.len));
        for slot in prepare(out, count) {
            *slot = next;
            next = if next + 1 == self.len { 0 } else { next + 1 };
        }
    }

    fn batch_len(&self, _step: u64) -> usize {
        self.batch
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        let batch = self.batch as u64;
        self.len.is_multiple_of(batch).then(|| self.len / batch)
    }

    fn describe(&self) -> String {
        format!("sequential(len={}, batch={})", self.len, self.batch)
    }
}
