//! Shuffled tables for lengths too small for a network.

use super::super::random::Stream;
use std::sync::{Arc, Mutex, PoisonError};

/// Tables kept, enough for workers that draw on both sides of a cycle's end.
const KEPT: usize = 4;

/// The last few tables of one sampler.
///
/// A table is a pure function of its stream, so the cache can change how long a draw takes but never what it
/// gives.
#[derive(Debug)]
pub(crate) struct Cache {
    len: u16,
    tables: Mutex<Vec<Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: (u64, u64),
    table: Arc<[u16]>,
}

impl Cache {
    pub(super) fn new(len: u64) -> Self {
        debug_assert!(len <= super::TABLE_MAX, "longer ones are networks");
        Self { len: narrow(len), tables: Mutex::new(Vec::new()) }
    }

    /// The table of `stream`, built when it is not one of the last few.
    pub(super) fn get(&self, stream: Stream) -> Arc<[u16]> {
        let key = stream.key();
        let find = |tables: &Vec<Entry>| {
            tables.iter().find(|entry| entry.key == key).map(|entry| Arc::clone(&entry.table))
        };
        if let Some(table) = find(&self.lock()) {
            return table;
        }
        // Built without the lock: two threads may build the same table, and both are right.
        let table = shuffle(self.len, stream);
        let mut tables = self.lock();
        if find(&tables).is_none() {
            tables.truncate(KEPT - 1);
            tables.insert(0, Entry { key, table: Arc::clone(&table) });
        }
        table
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self { len: self.len, tables: Mutex::new(self.lock().clone()) }
    }
}

/// Fisher and Yates' shuffle in Durstenfeld's form: position `i` trades places with one at or behind it.
fn shuffle(len: u16, stream: Stream) -> Arc<[u16]> {
    let mut table: Vec<u16> = (0..len).collect();
    for i in 0..len {
        let offset = stream.below(u64::from(len - i), u64::from(i));
        table.swap(usize::from(i), usize::from(i + narrow(offset)));
    }
    table.into()
}

pub(super) fn fill(table: &[u16], start: u64, out: &mut [u64]) {
    for (slot, value) in out.iter_mut().zip(&table[usize::from(narrow(start))..]) {
        *slot = u64::from(*value);
    }
}

pub(super) fn map(table: &[u16], positions: &mut [u64]) {
    for position in positions {
        *position = u64::from(table[usize::from(narrow(*position))]);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "lengths and positions here are at most 4096")]
fn narrow(x: u64) -> u16 {
    x as u16
}
