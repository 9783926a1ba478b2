use std::iter::FusedIterator;
use std::sync::Arc;

use super::Loader;
use crate::error::Result;
use crate::sampler::Sampler;

/// A finite pass, made by [`Loader::pass`]: a number of steps that is known, then the end.
///
/// It borrows the loader and its workers; the training steps go on where they were when it is dropped.
#[must_use = "a pass does nothing until it is iterated"]
pub struct Evaluation<'a, T> {
    loader: &'a mut Loader<T>,
    sampler: Arc<dyn Sampler>,
    next: u64,
    end: u64,
}

impl<'a, T> Evaluation<'a, T> {
    pub(super) fn new(loader: &'a mut Loader<T>, sampler: Arc<dyn Sampler>, end: u64) -> Self {
        Self { loader, sampler, next: 0, end }
    }

    /// The number of records that the whole pass delivers: what its sums are divided by.
    ///
    /// Adds up the steps' sizes, so keep the number.
    #[must_use]
    pub fn records(&self) -> u64 {
        (0..self.end).map(|step| self.sampler.batch_len(step) as u64).sum()
    }

    /// The number of steps of the whole pass.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.end
    }
}

impl<T> Iterator for Evaluation<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let delivery = self.loader.receive(self.next)?;
        self.next += 1;
        Some(delivery)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        super::hint(self.next, self.end)
    }
}

impl<T> ExactSizeIterator for Evaluation<'_, T> {}

impl<T> FusedIterator for Evaluation<'_, T> {}

impl<T> Drop for Evaluation<'_, T> {
    fn drop(&mut self) {
        self.loader.end_detour();
    }
}

impl<T> std::fmt::Debug for Evaluation<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluation")
            .field("sampler", &self.sampler.describe())
            .field("next", &self.next)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
