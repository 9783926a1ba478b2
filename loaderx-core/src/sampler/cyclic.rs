use super::permutation::Layout;
use super::random::{Domain, low};
use super::{Sampler, check_batch, check_permutable, clip, prepare};
use crate::error::Result;
use std::fmt;
use std::ops::Range;

/// What happens at the end of a cycle when the batch does not divide the number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tail {
    /// Every batch is full and lies within one cycle; the remainder of the cycle is not delivered. It is another
    /// remainder in each cycle, since each cycle has another order.
    #[default]
    Drop,
    /// Every batch is full and no record is left out: a batch runs on into the next cycle.
    Wrap,
    /// No record is left out and each batch lies within one cycle: the cycle's last batch is short.
    Short,
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Wrap => "wrap",
            Self::Short => "short",
        })
    }
}

/// Cycles over all records, each in a fresh pseudo-random order.
///
/// The order of a cycle is a permutation that is computed, not stored: position `p` of cycle `c` goes through a
/// keyed network, so any step of any cycle is drawn at once and in constant memory. See [`Tail`] for what happens
/// at a cycle's end.
///
/// ```
/// use loaderx_core::sampler::{Cyclic, Sampler, Tail};
///
/// let sampler = Cyclic::new(10, 5, 7)?;
/// let (mut first, mut second) = (vec![], vec![]);
/// sampler.draw(0, &mut first);
/// sampler.draw(1, &mut second);
/// let mut cycle = [first, second].concat();
/// cycle.sort_unstable();
/// assert_eq!(cycle, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
///
/// let short = Cyclic::new(10, 4, 7)?.tail(Tail::Short);
/// assert_eq!([0, 1, 2, 3].map(|step| short.batch_len(step)), [4, 4, 2, 4]);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cyclic {
    len: u64,
    batch: usize,
    seed: u64,
    tail: Tail,
    layout: Layout,
}

impl Cyclic {
    /// A sampler over `len` records, `batch` indices a step, with [`Tail::Drop`]; `seed` decides the orders.
    ///
    /// # Errors
    ///
    /// When `batch` is 0 or exceeds `len`, or `len` exceeds 2^40.
    pub fn new(len: u64, batch: usize, seed: u64) -> Result<Self> {
        check_batch(len, batch)?;
        check_permutable(len)?;
        Ok(Self { len, batch, seed, tail: Tail::default(), layout: Layout::new(len) })
    }

    /// Sets what happens at the end of a cycle.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> Self {
        self.tail = tail;
        self
    }

    /// The cycle that `step` begins in, and its position there.
    fn locate(&self, step: u64) -> (u64, u64) {
        let batch = self.batch as u64;
        let per_cycle = match self.tail {
            Tail::Drop => self.len / batch,
            Tail::Short => self.len.div_ceil(batch),
            Tail::Wrap => {
                let position = u128::from(step) * u128::from(batch);
                let len = u128::from(self.len);
                // The batch is at most the length, so there are at most as many cycles as steps.
                return (low(position / len), low(position % len));
            }
        };
        (step / per_cycle, step % per_cycle * batch)
    }
}

impl Sampler for Cyclic {
    fn len(&self) -> u64 {
        self.len
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch_len(step));
        let (mut cycle, position) = self.locate(step);
        let mut position = position + start as u64;
        if position >= self.len {
            (cycle, position) = (cycle.wrapping_add(1), position - self.len);
        }
        let mut rest = prepare(out, count);
        // At most twice round: a batch is not longer than a cycle.
        while !rest.is_empty() {
            let left = usize::try_from(self.len - position).unwrap_or(usize::MAX);
            let (part, behind) = rest.split_at_mut(left.min(rest.len()));
            self.layout.keyed(self.seed, Domain::Cycle, cycle).fill(position, part);
            rest = behind;
            (cycle, position) = (cycle.wrapping_add(1), 0);
        }
    }

    fn batch_len(&self, step: u64) -> usize {
        match self.tail {
            Tail::Drop | Tail::Wrap => self.batch,
            Tail::Short => {
                let left = self.len - self.locate(step).1;
                usize::try_from(left).map_or(self.batch, |left| left.min(self.batch))
            }
        }
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        let batch = self.batch as u64;
        match self.tail {
            Tail::Drop => Some(self.len / batch),
            Tail::Short => Some(self.len.div_ceil(batch)),
            Tail::Wrap => self.len.is_multiple_of(batch).then(|| self.len / batch),
        }
    }

    fn describe(&self) -> String {
        format!("cyclic(len={}, batch={}, seed={}, tail={})", self.len, self.batch, self.seed, self.tail)
    }
}
