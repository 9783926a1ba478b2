//! Looking ahead while records are copied or decoded.
//!
//! A random record is not in the cache, and a processor that has one copy in flight waits for memory most of the time.
//! So the record some places on is looked up and its first lines are asked for; its bytes are kept at hand, since
//! the lookup through chunk and mapping costs about as much as copying a small record.

use super::copy;
use crate::format::Location;
use crate::store::snapshot::Snapshot;

/// How many places ahead small records are asked for.
const FAR: usize = 8;
/// How many places ahead records of at least [`LARGE`] bytes are.
const NEAR: usize = 2;
/// Copying a record of this size takes longer than memory takes to answer. More of them at once also push each
/// other out of the cache when their size is a multiple of a page, since their first lines share its sets.
const LARGE: u64 = 4 << 10;

/// The mapped bytes of the records of a batch, in turn, each looked up some places before its own.
pub(in crate::store) struct Ahead<'a> {
    snapshot: &'a Snapshot,
    locations: &'a [Location],
    distance: usize,
    ring: [Option<&'a [u8]>; FAR],
}

impl<'a> Ahead<'a> {
    pub(in crate::store) fn new(snapshot: &'a Snapshot, locations: &'a [Location]) -> Self {
        let bytes: u64 = locations.iter().map(|location| u64::from(location.stored_length)).sum();
        let distance = if bytes < LARGE * locations.len() as u64 { FAR } else { NEAR };
        let mut ahead = Self { snapshot, locations, distance, ring: [None; FAR] };
        for i in 0..distance {
            ahead.ring[i] = ahead.look_up(i);
        }
        ahead
    }

    /// The mapped bytes of record `i`, for i = 0, 1, 2, ...; `None` where the chunk is not mapped.
    #[inline]
    pub(in crate::store) fn next(&mut self, i: usize) -> Option<&'a [u8]> {
        let stored = self.ring[i % FAR];
        let later = i + self.distance;
        self.ring[later % FAR] = self.look_up(later);
        stored
    }

    #[inline]
    fn look_up(&self, i: usize) -> Option<&'a [u8]> {
        let location = self.locations.get(i)?;
        let chunk = self.snapshot.chunk_of(location)?;
        let stored = chunk.mapped(u64::from(location.offset), u64::from(location.stored_length))?;
        copy::prefetch(stored);
        Some(stored)
    }
}
