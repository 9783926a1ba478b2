use super::Sampler;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// A view of some of the records, in front of which a sampler draws positions: a filter, a part of a split.
///
/// [`Sampler::over`] puts a sampler before it. A map is as pure as a sampler: the record at a position never
/// changes.
pub trait IndexMap: Send + Sync {
    /// The number of positions.
    fn len(&self) -> u64;

    /// Whether there is no position.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of records that the view is made of: every index that it gives is below it.
    fn records(&self) -> u64;

    /// Replaces each position, all of them below [`IndexMap::len`], by the index of its record.
    fn map(&self, positions: &mut [u64]);

    /// A text that names the kind of the map and every parameter that decides it.
    fn describe(&self) -> String;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<M: IndexMap + ?Sized> IndexMap for $pointer {
            fn len(&self) -> u64 {
                (**self).len()
            }

            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }

            fn records(&self) -> u64 {
                (**self).records()
            }

            fn map(&self, positions: &mut [u64]) {
                (**self).map(positions);
            }

            fn describe(&self) -> String {
                (**self).describe()
            }
        }
    )*};
}

forward!(&M, Arc<M>, Box<M>);

/// A sampler that draws positions of an [`IndexMap`] and gives the records' indices; made by [`Sampler::over`].
#[derive(Clone, Debug)]
pub struct Mapped<S, M> {
    inner: S,
    map: M,
}

impl<S: Sampler, M: IndexMap> Mapped<S, M> {
    pub(super) fn new(inner: S, map: M) -> Result<Self> {
        if inner.len() != map.len() {
            return Err(Error::invalid(format!(
                "a sampler over {} records cannot draw from a view of {}",
                inner.len(),
                map.len()
            ))
            .with_hint("build the sampler with the view's own `len()`"));
        }
        Ok(Self { inner, map })
    }
}

impl<S: Sampler, M: IndexMap> Sampler for Mapped<S, M> {
    /// The number of records behind the view, which is what indices are below; the sampler itself draws from
    /// [`IndexMap::len`] positions.
    fn len(&self) -> u64 {
        self.map.records()
    }

    fn batch_size(&self) -> usize {
        self.inner.batch_size()
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        self.inner.draw_slice(step, positions, out);
        self.map.map(out);
    }

    fn batch_len(&self, step: u64) -> usize {
        self.inner.batch_len(step)
    }

    fn first_position(&self, step: u64) -> usize {
        self.inner.first_position(step)
    }

    fn steps(&self) -> Option<u64> {
        self.inner.steps()
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        self.inner.steps_per_cycle()
    }

    fn describe(&self) -> String {
        format!("{} over {}", self.inner.describe(), self.map.describe())
    }

    fn describe_global(&self) -> String {
        format!("{} over {}", self.inner.describe_global(), self.map.describe())
    }
}
