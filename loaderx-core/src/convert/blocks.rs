use crate::error::{Error, Result};
use crate::store::Store;

/// Records are read in blocks of about this many bytes, and at most so many records.
pub(super) const BLOCK_BYTES: usize = 4 << 20;
pub(super) const BLOCK_RECORDS: usize = 1 << 16;

/// Calls `f(first, bytes, offsets)` for every block of records in order: the index of the first record, the bytes of
/// all, and where each starts and the last one ends.
pub(super) fn each_block(store: &Store, mut f: impl FnMut(u64, &[u8], &[usize]) -> Result<()>) -> Result<()> {
    let mut next = 0;
    let mut lengths = Vec::new();
    while next < store.len() {
        let wanted: Vec<u64> = (next..store.len()).take(BLOCK_RECORDS).collect();
        store.lengths(&wanted, &mut lengths)?;
        let mut bytes = 0;
        let fitting = lengths.iter().take_while(|&&length| {
            bytes += length;
            bytes <= BLOCK_BYTES as u64
        });
        let count = fitting.count().max(1);
        let indices = wanted.get(..count).unwrap_or(&wanted);
        let (packed, offsets) = store.gather_packed(indices)?;
        let offsets = offsets
            .into_iter()
            .map(|offset| usize::try_from(offset).map_err(|_| Error::corrupt("a block is too large")))
            .collect::<Result<Vec<_>>>()?;
        f(next, &packed, &offsets)?;
        next += indices.len() as u64;
    }
    Ok(())
}
