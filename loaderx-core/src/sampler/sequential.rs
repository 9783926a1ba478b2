use super::Sampler;
use crate::error::{Error, Result};

/// Records in stored order: `(step * batch + i) mod len`, so the tail wraps into the next round.
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
        if batch == 0 || batch as u64 > len {
            return Err(Error::invalid(format!("a batch of {batch} cannot be drawn from {len} records")));
        }
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

    fn draw(&self, step: u64, out: &mut Vec<u64>) {
        out.clear();
        let len = u128::from(self.len);
        let start = u128::from(step) * self.batch as u128 % len;
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a u64 fits in a u64")]
        out.extend((0..self.batch as u128).map(|i| ((start + i) % len) as u64));
    }

    fn describe(&self) -> String {
        format!("sequential(len={}, batch={})", self.len, self.batch)
    }
}
