//! Samplers that look at the records' lengths.
//!
//! The lengths are sorted once, when a sampler is built; the order costs 4 bytes a record. From then on a step is
//! computed as in the other samplers: its place in its cycle, that place's batch, the batch's records.

mod bucketed;
mod plan;
mod token_budget;

pub use bucketed::Bucketed;
pub use token_budget::TokenBudget;

use super::random::Digest;
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// The records in the order of their lengths, equal ones in the order of their indices.
#[derive(Clone, Debug)]
struct ByLength {
    records: Arc<[u32]>,
    digest: u64,
}

/// Neighbours in the order of lengths, with the shortest and the longest length among them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    places: Range<u32>,
    shortest: u32,
    longest: u32,
}

impl Group {
    fn len(&self) -> u32 {
        self.places.end - self.places.start
    }
}

impl ByLength {
    /// Sorts, and gives the sorted lengths too, which only building needs.
    fn new(lengths: &[u32]) -> Result<(Self, Vec<u32>)> {
        if u32::try_from(lengths.len()).is_err() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("the lengths of {} records are more than the limit of {}", lengths.len(), u32::MAX),
            ));
        }
        let mut digest = Digest::new();
        let mut keys: Vec<u64> = Vec::with_capacity(lengths.len());
        for (record, length) in (0_u64..).zip(lengths) {
            digest.add(u64::from(*length));
            keys.push(u64::from(*length) << 32 | record);
        }
        keys.sort_unstable();
        let records = keys.iter().map(|key| lower(*key)).collect();
        let sorted = keys.into_iter().map(|key| lower(key >> 32)).collect();
        Ok((Self { records, digest: digest.finish() }, sorted))
    }

    fn len(&self) -> u64 {
        self.records.len() as u64
    }

    /// Replaces places in the order of lengths by the records there.
    fn map(&self, places: &mut [u64]) {
        for place in places {
            *place = u64::from(self.records[super::index(*place)]);
        }
    }
}

/// Cuts sorted lengths into groups, before each place where `cut(group so far, length there)` says so.
fn group(sorted: &[u32], cut: impl Fn(&Group, u32) -> bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (place, &length) in (0_u32..).zip(sorted) {
        match groups.last_mut() {
            Some(last) if !cut(last, length) => {
                last.places.end = place + 1;
                last.longest = length;
            }
            _ => groups.push(Group { places: place..place + 1, shortest: length, longest: length }),
        }
    }
    groups
}

#[expect(clippy::cast_possible_truncation, reason = "taking the lower half is what this function is for")]
fn lower(word: u64) -> u32 {
    word as u32
}
