//! Samplers: which records a step delivers, as a pure function of (seed, step).
//!
//! A sampler has no state. [`Sampler::draw`] may be called for any step in any order from any thread and
//! always gives the same indices; that is what makes resume exact and immediate.

mod sequential;

pub use sequential::Sequential;

/// Chooses the records of each step.
///
/// Every implementation is a pure function of its configuration and the step: no state, no replay, the same
/// answer for the same step for ever. `draw` is O(batch) at any step and any length.
pub trait Sampler: Send + Sync {
    /// The records that indices are drawn from: every index is below it.
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
    fn draw(&self, step: u64, out: &mut Vec<u64>);

    /// The number of steps of a finite pass; `None` for the endless samplers.
    fn steps(&self) -> Option<u64> {
        None
    }

    /// A text that names the mode and every parameter that decides the order.
    ///
    /// Two samplers with the same text draw the same indices at every step; a loader's saved state carries it
    /// and refuses to resume with another one.
    fn describe(&self) -> String;
}
