//! Random operations on a store and, beside it, on its model.

use loaderx_core::{Result, Store};

use crate::model::Model;
use crate::random::Random;

/// One operation.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Append these records in one call.
    Append(Vec<Vec<u8>>),
    /// Delete these indices in one call.
    Delete(Vec<u64>),
    /// Compact.
    Compact,
    /// Make everything durable.
    Sync,
}

impl Operation {
    /// Does it to a store.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn apply(&self, store: &mut Store) -> Result<()> {
        match self {
            Self::Append(records) => {
                store.append_slices(records.iter().map(Vec::as_slice))?;
            }
            Self::Delete(indices) => {
                let mut distinct = indices.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(store.delete(indices)?, distinct.len() as u64);
            }
            Self::Compact => {
                store.compact()?;
            }
            Self::Sync => store.sync()?,
        }
        Ok(())
    }

    /// Does it to a model.
    pub fn apply_to_model(&self, model: &mut Model) {
        match self {
            Self::Append(records) => {
                model.append(records);
            }
            Self::Delete(indices) => {
                model.delete(indices);
            }
            Self::Compact | Self::Sync => {}
        }
    }
}

/// An endless sequence of operations, a function of its seed and of the lengths that the store goes through.
#[derive(Clone, Debug)]
pub struct Churn {
    random: Random,
    max_record: usize,
}

impl Churn {
    /// The sequence of this seed, with records of 1 to `max_record` bytes.
    #[must_use]
    pub fn new(seed: u64, max_record: usize) -> Self {
        Self { random: Random::new(seed), max_record }
    }

    /// The next operation for a store that now has `len` records. It stays below some hundred records.
    pub fn step(&mut self, len: usize) -> Operation {
        let len = len as u64;
        match self.random.below(10) {
            0 => Operation::Sync,
            1..=2 => Operation::Compact,
            3..=5 if len > 0 => {
                // Now and then a large part of the store, mostly a handful.
                let count =
                    if self.random.one_in(6) || len > 300 { len / 2 } else { self.random.below(4) + 1 };
                Operation::Delete((0..count).map(|_| self.random.below(len)).collect())
            }
            _ => {
                let count = 1 + self.random.below(24) as usize;
                Operation::Append(self.random.records(count, 1, self.max_record))
            }
        }
    }
}
