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

/// Neighbouring rows of a batch on their way into it.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// The records' indices in the store.
    pub(super) indices: &'a [u64],
    /// Their decoded bytes, one after the other.
    pub(super) bytes: &'a [u8],
}

/// As [`rows_of`] for records that all have `record_bytes` bytes and are converted element by element: `write` makes
/// the rows of a whole block at a time.
///
/// Small records are first gathered into memory that stays in the cache, many at a time: the copying then waits for
/// the main memory as the plain gather does, and the work of `write` no longer stands between two records that are on
/// their way. Large ones are lent where they lie, since there the second copy would cost more than that.
pub(super) fn blocks_of<'a>(
    store: &Store,
    request: &Request<'_>,
    record_bytes: usize,
    row_bytes: usize,
    room: &'a mut [MaybeUninit<u8>],
    write: impl Fn(Block<'_>, &mut Filler<'_>) -> Result<()> + Sync,
) -> Result<&'a mut [u8]> {
    if record_bytes == 0 || record_bytes > SMALL {
        return rows_of(store, request, row_bytes, room, |record, filler| {
            write(Block { indices: &[record.index], bytes: record.bytes }, filler)
        });
    }
    rows::fill(room, request.indices.len(), row_bytes, request.threads, |range, block| {
        let mut filler = Filler::new(block);
        let indices = request.indices.get(range).unwrap_or(&[]);
        let at_once = (BLOCK_BYTES / record_bytes).clamp(1, indices.len().max(1));
        let mut scratch = Vec::<u8>::with_capacity(at_once * record_bytes);
        for indices in indices.chunks(at_once) {
            let place =
                scratch.spare_capacity_mut().get_mut(..indices.len() * record_bytes).unwrap_or(&mut []);
            let bytes = store.gather_fixed(indices, record_bytes, place)?;
            let before = filler.remaining();
            write(Block { indices, bytes }, &mut filler).map_err(|error| error.at_path(store.path()))?;
            if before - filler.remaining() != indices.len() * row_bytes {
                return Err(Error::invalid(format!("records did not fill their rows of {row_bytes} bytes")));
            }
        }
        filler.finish()
    })
}

/// Records up to this size are gathered into a block first.
const SMALL: usize = 4 << 10;
/// Bytes of that block: with what is made of it, it stays in the second cache.
const BLOCK_BYTES: usize = 256 << 10;

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
