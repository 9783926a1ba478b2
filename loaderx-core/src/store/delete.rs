//! Delete: the last records move into the holes, in the table only.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::journal::{self, Plan};
use super::{Store, names};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Header;
use crate::format::journal::JournalEntry;

impl Store {
    /// Removes records, all of them or, on an error, none; returns how many that were.
    ///
    /// The order of `indices` and repetitions in it do not matter. From the highest index to the lowest, the last
    /// record takes the place of the removed one: deleting record 1 of 6 leaves 0, 5, 2, 3, 4. The stored bytes stay
    /// where they are until [`Store::compact`]. The result is durable, and so is everything appended before.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Store::len`]; [`ErrorKind::Locked`] when another handle or process has the
    /// store open; [`ErrorKind::ReadOnly`]; when a write fails. If the journal was complete by then, the handle refuses
    /// everything from then on ([`ErrorKind::NeedsRecovery`]), and opening for writing finishes the delete.
    pub fn delete(&mut self, indices: &[u64]) -> Result<u64> {
        self.check_usable()?;
        self.writer()?;
        let length = self.refresh()?.length();
        if let Some(index) = indices.iter().find(|&&index| index >= length) {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!("record {index} is to be deleted, the store has {length}"),
            )
            .at_path(&self.path));
        }
        let mut holes = indices.to_vec();
        holes.sort_unstable();
        holes.dedup();
        let removed = holes.len() as u64;
        if removed == 0 {
            return Ok(0);
        }
        self.alone(|store| {
            let moved = fill_holes(length, &holes);
            let snapshot = store.refresh()?;
            let mut entries = Vec::with_capacity(moved.len());
            for (index, source) in moved {
                let failed = |name: &'static str| {
                    let path = store.file(name);
                    move |error| Error::io("read the entry of a record", path, error).for_record(source)
                };
                entries.push(JournalEntry {
                    index,
                    location: snapshot.entry(source).map_err(failed(names::META))?,
                    check: snapshot.check(source).map_err(failed(names::CHECKS))?,
                });
            }
            let kept = u32::try_from(length - removed)
                .map_err(|_| Error::corrupt("the header counts more records than it can"))?;
            let after = Header { length: kept, ..snapshot.header };
            store.carry_out(&Plan { after, entries, data: Vec::new(), trim: false })
        })?;
        Ok(removed)
    }

    /// Runs `change` while no other handle has the store open, with everything synced before and all mappings
    /// renewed after.
    pub(super) fn alone<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let lock = |error| Error::io("lock the store for itself", &self.path, error);
        if !self.presence.upgrade().map_err(lock)? {
            return Err(Error::new(
                ErrorKind::Locked,
                "another handle or process has the store open, and records cannot move under it",
            )
            .at_path(&self.path)
            .with_hint("close the other handles, readers too"));
        }
        let result = self.sync().and_then(|()| change(self));
        let renewed = match self.writer() {
            Ok(writer) => {
                let header = writer.lock().unwrap_or_else(PoisonError::into_inner).header;
                self.reset_snapshot(header)
            }
            Err(error) => Err(error),
        };
        let released = self
            .presence
            .downgrade()
            .map_err(|error| Error::io("unlock the store for others", &self.path, error));
        let result = result?;
        renewed?;
        released?;
        Ok(result)
    }

    /// Does a plan; if it fails half-way, the handle is unusable from then on.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<()> {
        let mut writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        journal::carry_out(&mut writer, plan).map_err(|failed| {
            let (error, broken) = failed.into_error();
            self.broken.fetch_or(broken, Ordering::AcqRel);
            error
        })
    }
}

/// Which record stands where after the holes (ascending, unique) have been filled: pairs of a new index, ascending,
/// and the index of the record that moves there.
fn fill_holes(length: u64, holes: &[u64]) -> Vec<(u64, u64)> {
    let mut standing: HashMap<u64, u64> = HashMap::with_capacity(holes.len());
    let mut length = length;
    for &hole in holes.iter().rev() {
        length -= 1;
        let last = standing.remove(&length).unwrap_or(length);
        if hole != length {
            standing.insert(hole, last);
        }
    }
    let mut moved: Vec<_> = standing.into_iter().collect();
    moved.sort_unstable();
    moved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The oracle: what the Python package does, one record at a time.
    fn naive(length: u64, holes: &[u64]) -> Vec<u64> {
        let mut records: Vec<u64> = (0..length).collect();
        for &hole in holes.iter().rev() {
            records.swap_remove(usize::try_from(hole).unwrap());
        }
        records
    }

    proptest! {
        #[test]
        fn holes_are_filled_as_one_at_a_time(length in 0_u64..60, picks in proptest::collection::btree_set(0_u64..60, 0..60)) {
            let holes: Vec<u64> = picks.into_iter().filter(|&hole| hole < length).collect();
            let mut records: Vec<u64> = (0..length - holes.len() as u64).collect();
            for (index, source) in fill_holes(length, &holes) {
                prop_assert!(index != source);
                records[usize::try_from(index).unwrap()] = source;
            }
            prop_assert_eq!(records, naive(length, &holes));
        }
    }

    #[test]
    fn deleting_record_1_of_6_moves_the_last_there() {
        assert_eq!(fill_holes(6, &[1]), [(1, 5)]);
        assert_eq!(fill_holes(6, &[5]), []);
        assert_eq!(fill_holes(6, &[0, 1, 2, 3, 4, 5]), []);
    }
}
