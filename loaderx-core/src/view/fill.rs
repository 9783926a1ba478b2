//! Batches of equal rows, each made from one record.

use std::mem::MaybeUninit;

use super::Request;
use crate::buffer::{Filler, rows};
use crate::error::{Error, Result};
use crate::store::Store;

/// One record on its way into a batch.
#[derive(Clone, Copy)]
pub(super) struct Visited<'a> {
    /// Its position in the batch.
    pub(super) position: usize,
    /// Its index in the store.
    pub(super) index: u64,
    /// Its decoded bytes.
    pub(super) bytes: &'a [u8],
}

/// Makes row `i` of `room` from the record at `request.indices[i]`: `write` puts exactly `row_bytes` bytes into the
/// filler. On up to `request.threads` threads.
pub(super) fn rows_of<'a>(
    store: &Store,
    request: &Request<'_>,
    row_bytes: usize,
    room: &'a mut [MaybeUninit<u8>],
    write: impl Fn(Visited<'_>, &mut Filler<'_>) -> Result<()> + Sync,
) -> Result<&'a mut [u8]> {
    rows::fill(room, request.indices.len(), row_bytes, request.threads, |range, block| {
        let mut filler = Filler::new(block);
        let first = range.start;
        let indices = request.indices.get(range).unwrap_or(&[]);
        store.visit(indices, |at, bytes| {
            let index = indices.get(at).copied().unwrap_or(0);
            write_row(store, Visited { position: first + at, index, bytes }, row_bytes, &mut filler, &write)
        })?;
        filler.finish()
    })
}

/// As [`rows_of`] for records that all have `record_bytes` bytes.
///
/// Small records are first gathered into a block that stays in the cache, many at a time: the copying then waits for
/// memory as the plain gather does, and the work of `write` no longer stands between two records that are on their
/// way. Large ones are lent where they lie, since there the second copy would cost more than that.
pub(super) fn rows_of_fixed<'a>(
    store: &Store,
    request: &Request<'_>,
    record_bytes: usize,
    row_bytes: usize,
    room: &'a mut [MaybeUninit<u8>],
    write: impl Fn(Visited<'_>, &mut Filler<'_>) -> Result<()> + Sync,
) -> Result<&'a mut [u8]> {
    if record_bytes == 0 || record_bytes > SMALL {
        return rows_of(store, request, row_bytes, room, write);
    }
    rows::fill(room, request.indices.len(), row_bytes, request.threads, |range, block| {
        let mut filler = Filler::new(block);
        let mut position = range.start;
        let indices = request.indices.get(range).unwrap_or(&[]);
        let at_once = (BLOCK / record_bytes).min(indices.len());
        let mut scratch = Vec::<u8>::with_capacity(at_once * record_bytes);
        for indices in indices.chunks(at_once.max(1)) {
            let place =
                scratch.spare_capacity_mut().get_mut(..indices.len() * record_bytes).unwrap_or(&mut []);
            let gathered = store.gather_fixed(indices, record_bytes, place)?;
            for (&index, bytes) in indices.iter().zip(gathered.chunks_exact(record_bytes)) {
                write_row(store, Visited { position, index, bytes }, row_bytes, &mut filler, &write)?;
                position += 1;
            }
        }
        filler.finish()
    })
}

/// Records up to this size are gathered into a block first.
const SMALL: usize = 4 << 10;
/// Bytes of that block: with what is made of it, it stays in the second cache.
const BLOCK: usize = 64 << 10;

/// Lets `write` make one row and checks that it did.
fn write_row(
    store: &Store,
    record: Visited<'_>,
    row_bytes: usize,
    filler: &mut Filler<'_>,
    write: &impl Fn(Visited<'_>, &mut Filler<'_>) -> Result<()>,
) -> Result<()> {
    let before = filler.remaining();
    let index = record.index;
    write(record, filler).map_err(|error| error.for_record(index).at_path(store.path()))?;
    if before - filler.remaining() == row_bytes {
        return Ok(());
    }
    Err(Error::invalid(format!("a record did not fill its row of {row_bytes} bytes")).for_record(index))
}
