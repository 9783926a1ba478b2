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
            let before = filler.remaining();
            write(Visited { position: first + at, index, bytes }, &mut filler)
                .map_err(|error| error.for_record(index).at_path(store.path()))?;
            if before - filler.remaining() == row_bytes {
                return Ok(());
            }
            Err(Error::invalid(format!("a record did not fill its row of {row_bytes} bytes"))
                .for_record(index))
        })?;
        filler.finish()
    })
}
