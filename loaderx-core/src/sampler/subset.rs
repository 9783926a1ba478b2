use super::IndexMap;
use super::random::Digest;
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The records of a list of indices, in the list's order: what a filter leaves.
///
/// The list is made before sampling, so what is drawn is what is delivered. An index may occur more than once.
///
/// ```
/// use loaderx_core::sampler::{Cyclic, Pass, Sampler, Subset};
///
/// let labels = [3, 1, 3, 0, 3];
/// let threes = Subset::new(5, (0..5).filter(|i| labels[*i as usize] == 3).collect::<Vec<u64>>())?;
/// let mut out = vec![];
/// Pass::new(threes.len(), 2)?.over(threes.clone())?.draw(0, &mut out);
/// assert_eq!(out, [0, 2]);
/// let training = Cyclic::new(threes.len(), 2, 42)?.over(threes)?;
/// assert_eq!(training.len(), 5); // indices are those of the 5 records
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subset {
    records: u64,
    indices: Arc<[u64]>,
    digest: u64,
}

#[expect(clippy::len_without_is_empty, reason = "no subset is empty")]
impl Subset {
    /// The records `indices` of a store of `records` records.
    ///
    /// # Errors
    ///
    /// When the list is empty or an index is not below `records`.
    pub fn new(records: u64, indices: impl Into<Arc<[u64]>>) -> Result<Self> {
        let indices = indices.into();
        if indices.is_empty() {
            return Err(Error::invalid(format!("a subset of {records} records holds none of them")));
        }
        let mut digest = Digest::new();
        for (position, index) in indices.iter().enumerate() {
            if *index >= records {
                return Err(Error::new(
                    ErrorKind::OutOfRange,
                    format!("entry {position} of a subset is index {index}, and there are {records} records"),
                )
                .for_record(*index));
            }
            digest.add(*index);
        }
        Ok(Self { records, digest: digest.finish(), indices })
    }

    /// The number of entries of the list.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    /// The list of indices.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }
}

impl IndexMap for Subset {
    fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    fn records(&self) -> u64 {
        self.records
    }

    fn map(&self, positions: &mut [u64]) {
        for position in positions {
            *position = self.indices[super::index(*position)];
        }
    }

    fn describe(&self) -> String {
        format!("subset(records={}, len={}, digest={:016x})", self.records, self.len(), self.digest)
    }
}
