//! Samplers: which records a step delivers, as a pure function of (configuration, seed, step).
//!
//! A sampler has no state. [`Sampler::draw`] may be called for any step, in any order, from any thread, and
//! always gives the same indices: resuming a run is asking for the next step, at once, however far it is.
//! Nothing the size of the data set is stored or replayed for the order, up to 2^40 records and any `u64` step.
//!
//! | mode | what a step holds | use it for |
//! |---|---|---|
//! | [`Cyclic`] | the next part of this cycle's fresh permutation | training: every record once a cycle |
//! | [`Iid`] | uniform draws with replacement | training without epochs, bootstrap |
//! | [`Weighted`] | draws with replacement, each record by its weight | rare classes |
//! | [`Mixture`] | several sources in fixed proportions, each in its own order | pre-training mixtures |
//! | [`Bucketed`] | records of similar length | padded batches of a fixed number of records |
//! | [`TokenBudget`] | as many records as fit a number of tokens | language models |
//! | [`Sequential`] | records in stored order, for ever | data that was shuffled when written, debugging |
//! | [`Pass`] | records in stored order, once, the last batch short | evaluation: exact counts |
//!
//! Around any of them, [`Sampler::sharded`] gives each rank its slice of one global batch, and [`Sampler::over`]
//! draws from a view of the records: a [`Subset`] or a part of a [`split`].
//!
//! ```
//! use loaderx_core::sampler::{Cyclic, Sampler, Tail};
//!
//! let sampler = Cyclic::new(60_000, 256, 42)?.tail(Tail::Drop);
//! let mut indices = Vec::new();
//! sampler.draw(1_000_000_000, &mut indices); // as fast as step 0
//! assert_eq!(indices.len(), 256);
//!
//! // Two ranks draw the halves of the same batch.
//! let (mut first, mut second) = (Vec::new(), Vec::new());
//! sampler.clone().sharded(0, 2)?.draw(1_000_000_000, &mut first);
//! sampler.sharded(1, 2)?.draw(1_000_000_000, &mut second);
//! assert_eq!([first, second].concat(), indices);
//! # Ok::<(), loaderx_core::Error>(())
//! ```
//!
//! The generators and permutations are fixed for ever by the test vectors in `docs/sampling.md`.

mod cyclic;
mod iid;
mod lengths;
mod mapped;
mod mixture;
mod pass;
mod permutation;
mod random;
mod sequential;
mod sharded;
mod split;
mod subset;
mod weighted;

pub use cyclic::{Cyclic, Tail};
pub use iid::Iid;
pub use lengths::{Bucketed, TokenBudget};
pub use mapped::{IndexMap, Mapped};
pub use mixture::Mixture;
pub use pass::Pass;
pub use sequential::Sequential;
pub use sharded::Sharded;
pub use split::{Split, split};
pub use subset::Subset;
pub use weighted::Weighted;

use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// Chooses the records of each step.
///
/// Every implementation is a pure function of its configuration and the step: no state, no replay, the same
/// answer for the same step for ever. `draw` is O(batch) at any step and any length.
///
/// An implementation of one's own needs [`len`](Sampler::len), [`batch_size`](Sampler::batch_size),
/// [`draw_slice`](Sampler::draw_slice) and [`describe`](Sampler::describe). The other methods follow from them; a
/// sampler whose batches can be short, or that ends, also says so by [`batch_len`](Sampler::batch_len) and
/// [`steps`](Sampler::steps).
///
/// ```
/// use loaderx_core::sampler::Sampler;
/// use std::ops::Range;
///
/// /// Every second record.
/// struct Even { records: u64, batch: usize }
///
/// impl Sampler for Even {
///     fn len(&self) -> u64 { self.records }
///     fn batch_size(&self) -> usize { self.batch }
///     fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
///         let start = u128::from(step) * self.batch as u128;
///         let even = u128::from(self.records.div_ceil(2));
///         let positions = positions.start..positions.end.min(self.batch);
///         out.clear();
///         out.extend(positions.map(|i| ((start + i as u128) % even) as u64 * 2));
///     }
///     fn describe(&self) -> String { format!("even(len={}, batch={})", self.records, self.batch) }
/// }
///
/// let mut out = vec![];
/// Even { records: 5, batch: 4 }.sharded(1, 2)?.draw(0, &mut out);
/// assert_eq!(out, [4, 0]); // of 0, 2, 4, 0
/// # Ok::<(), loaderx_core::Error>(())
/// ```
pub trait Sampler: Send + Sync {
    /// The number of records that indices are drawn from: every index is below it.
    fn len(&self) -> u64;

    /// Whether there is no record to draw; such samplers cannot be built, so this is `false` in practice.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of indices that a step has.
    fn batch_size(&self) -> usize;

    /// Replaces the content of `out` by the indices of `step`.
    ///
    /// `out` becomes empty when `step` lies behind the end of a finite sampler ([`Sampler::steps`]).
    fn draw(&self, step: u64, out: &mut Vec<u64>) {
        self.draw_slice(step, 0..self.batch_size(), out);
    }

    /// Replaces the content of `out` by a part of the step's batch: the indices at `positions`, counted from 0.
    /// Positions at or past the batch's end give nothing.
    ///
    /// This is what a rank draws its share by; the samplers of this crate pay for the slice alone.
    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>);

    /// The number of indices that `step` has: [`Sampler::batch_size`] unless its batch is short, 0 behind the
    /// end of a finite sampler.
    ///
    /// The default draws the batch to count it.
    fn batch_len(&self, step: u64) -> usize {
        let mut out = Vec::new();
        self.draw(step, &mut out);
        out.len()
    }

    /// The place of this step's first index in the global batch: 0 but for a [`Sharded`] part.
    ///
    /// It keys the random numbers of a record map, so that ranks draw different ones, and a record the same ones in
    /// a world of any size.
    fn first_position(&self, step: u64) -> usize {
        let _ = step;
        0
    }

    /// The number of steps of a finite pass; `None` for the endless samplers.
    fn steps(&self) -> Option<u64> {
        None
    }

    /// The number of steps in which a cycle over the records ends, where that is the same whole number for every
    /// cycle; `None` where there are no cycles or they end within a batch.
    fn steps_per_cycle(&self) -> Option<u64> {
        None
    }

    /// A text that names the mode and every parameter that decides the order.
    ///
    /// Two samplers with the same text draw the same indices at every step.
    fn describe(&self) -> String;

    /// [`Sampler::describe`] without the rank and the world size: what all ranks of any world share.
    ///
    /// A saved run may go on with another world size; what has to stay the same is this text.
    fn describe_global(&self) -> String {
        self.describe()
    }

    /// The part of this sampler that belongs to `rank` of `world`: see [`Sharded`].
    ///
    /// # Errors
    ///
    /// When `world` is 0, `rank` is not below it, or `world` exceeds the batch, so that a rank would never
    /// receive a record.
    fn sharded(self, rank: usize, world: usize) -> Result<Sharded<Self>>
    where
        Self: Sized,
    {
        Sharded::new(self, rank, world)
    }

    /// This sampler's draws as positions of `map`, a view of some of the records: a [`Subset`], a part of a
    /// [`split`].
    ///
    /// # Errors
    ///
    /// When the sampler is not over as many records as the view has positions.
    fn over<M: IndexMap>(self, map: M) -> Result<Mapped<Self, M>>
    where
        Self: Sized,
    {
        Mapped::new(self, map)
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Sampler + ?Sized> Sampler for $pointer {
            fn len(&self) -> u64 {
                (**self).len()
            }

            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }

            fn batch_size(&self) -> usize {
                (**self).batch_size()
            }

            fn draw(&self, step: u64, out: &mut Vec<u64>) {
                (**self).draw(step, out);
            }

            fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
                (**self).draw_slice(step, positions, out);
            }

            fn batch_len(&self, step: u64) -> usize {
                (**self).batch_len(step)
            }

            fn first_position(&self, step: u64) -> usize {
                (**self).first_position(step)
            }

            fn steps(&self) -> Option<u64> {
                (**self).steps()
            }

            fn steps_per_cycle(&self) -> Option<u64> {
                (**self).steps_per_cycle()
            }

            fn describe(&self) -> String {
                (**self).describe()
            }

            fn describe_global(&self) -> String {
                (**self).describe_global()
            }
        }
    )*};
}

forward!(&S, Arc<S>, Box<S>);

/// Refuses an empty batch, an empty data set and a batch that the data set cannot fill.
fn check_batch(len: u64, batch: usize) -> Result<()> {
    if batch == 0 {
        return Err(Error::invalid(format!("a batch of 0 records cannot be drawn (from {len} records)"))
            .with_hint("ask for a batch of at least 1"));
    }
    if batch as u64 > len {
        return Err(Error::invalid(format!("a batch of {batch} cannot be drawn from {len} records")).with_hint(
            "the batch is the global one, of all ranks together: make it smaller, or use `Pass`, whose last \
             batch may be short, to evaluate",
        ));
    }
    Ok(())
}

/// Refuses more records than a permutation supports.
fn check_permutable(len: u64) -> Result<()> {
    if len > permutation::MAX_LEN {
        let limit = permutation::MAX_LEN;
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("{len} records cannot be permuted, the limit is {limit}"),
        ));
    }
    Ok(())
}

/// The part of `positions` that lies within a batch of `batch_len`: its start and its length.
fn clip(positions: &Range<usize>, batch_len: usize) -> (usize, usize) {
    let start = positions.start.min(batch_len);
    (start, positions.end.min(batch_len).saturating_sub(start))
}

/// Makes `out` have `count` elements, whatever they are; the caller writes all of them.
fn prepare(out: &mut Vec<u64>, count: usize) -> &mut [u64] {
    // Not cleared first: only elements past the old length would have to be zeroed.
    out.resize(count, 0);
    out
}

/// A position in a slice in memory.
#[expect(clippy::cast_possible_truncation, reason = "positions below the length of a slice fit in a usize")]
fn index(position: u64) -> usize {
    position as usize
}
