//! The first stage of a gather: indices become validated locations.
//!
//! All entries of a batch are looked up before the first record is copied. The lookups are independent loads that the
//! processor overlaps; one lookup before each copy would wait for memory each time. And a batch that cannot be
//! gathered is refused before anything was written.

use std::cell::RefCell;
use std::sync::Arc;

use super::super::snapshot::Snapshot;
use super::super::{Store, names};
use super::copy;
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Compression, HEADER_BYTES, LOCATION_BYTES, Location};

/// How many entries ahead the table is asked for: a table of millions of records is not in the cache either.
const ENTRIES_AHEAD: usize = 24;

thread_local! {
    static LOCATIONS: RefCell<Vec<Location>> = const { RefCell::new(Vec::new()) };
}

/// A list of locations whose memory goes back to the thread when it is dropped.
pub(in crate::store) struct Locations(Vec<Location>);

impl Locations {
    fn take() -> Self {
        // A callback of `visit` may gather on the same thread: it then finds the slot empty and makes its own.
        let mut list = LOCATIONS.take();
        list.clear();
        Self(list)
    }
}

impl Drop for Locations {
    fn drop(&mut self) {
        LOCATIONS.set(std::mem::take(&mut self.0));
    }
}

impl std::ops::Deref for Locations {
    type Target = [Location];

    fn deref(&self) -> &[Location] {
        &self.0
    }
}

impl Store {
    /// The locations of `indices`, and a snapshot in which each of them lies within its chunk.
    pub(in crate::store) fn resolve(&self, indices: &[u64]) -> Result<(Locations, Arc<Snapshot>)> {
        let (locations, mut snapshot) = self.locate(indices)?;
        for (&index, location) in indices.iter().zip(locations.iter()) {
            if snapshot.chunk_of(location).is_none() {
                snapshot = self.reach(location).map_err(|error| error.for_record(index))?;
            }
            if location.decoded_length > codec::BELIEVED_BYTES && location.compression != Compression::Raw {
                self.check_promise(&snapshot, index, location)?;
            }
        }
        Ok((locations, snapshot))
    }

    /// The locations of `indices`, not yet held against the chunks.
    pub(in crate::store) fn locate(&self, indices: &[u64]) -> Result<(Locations, Arc<Snapshot>)> {
        self.check_usable()?;
        let mut snapshot = self.snapshot();
        if let Some(&index) = indices.iter().find(|&&index| index >= snapshot.length()) {
            snapshot = self.refresh()?;
            let length = snapshot.length();
            if let Some(&index) = indices.iter().find(|&&index| index >= length) {
                return Err(Error::new(
                    ErrorKind::OutOfRange,
                    format!("record {index} was asked for, the store has {length}"),
                )
                .at_path(self.path()));
            }
            debug_assert!(index < length);
        }
        let mut locations = Locations::take();
        locations.0.reserve(indices.len());
        let damaged = |error: Error, index| error.at_path(self.file(names::META)).for_record(index);
        let table_bytes = snapshot.length() * LOCATION_BYTES as u64;
        if let Some(table) = snapshot.table.mapped(HEADER_BYTES as u64, table_bytes) {
            let (entries, _) = table.as_chunks::<LOCATION_BYTES>();
            let entry_of = |index| usize::try_from(index).ok().and_then(|index: usize| entries.get(index));
            for (i, &index) in indices.iter().enumerate() {
                if let Some(entry) = indices.get(i + ENTRIES_AHEAD).and_then(|&later| entry_of(later)) {
                    copy::prefetch(entry);
                }
                let entry = entry_of(index).ok_or_else(|| Error::corrupt("the record table is cut short"));
                let location = entry.and_then(|entry| Location::decode(entry, self.version));
                locations.0.push(location.map_err(|error| damaged(error, index))?);
            }
        } else {
            for &index in indices {
                let entry = snapshot.entry(index).map_err(|error| {
                    Error::io("read the record table", self.file(names::META), error).for_record(index)
                })?;
                let location = Location::decode(&entry, self.version);
                locations.0.push(location.map_err(|error| damaged(error, index))?);
            }
        }
        Ok((locations, snapshot))
    }

    /// Holds the length that the table promises against the frame.
    fn check_promise(&self, snapshot: &Snapshot, index: u64, location: &Location) -> Result<()> {
        let chunk = self.chunk_of(snapshot, index, location)?;
        codec::check_promise(u64::from(location.stored_length), location.decoded_length, |at, buffer| {
            chunk
                .read_exact(buffer, u64::from(location.offset) + at)
                .map_err(|error| self.unreadable(index, location, error))
        })
        .map_err(|error| self.damaged(index, location, error))
    }
}
