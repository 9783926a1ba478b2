use crate::error::{Error, Result};
use crate::store::Store;

/// Records are read in blocks of about this many bytes, and at most so many records.
pub(super) const BLOCK_BYTES: usize = 4 << 20;
pub(super) const BLOCK_RECORDS: usize = 1 << 16;

/// Calls `f(first, bytes, offsets)` for every block of records in order: the index of the first record, the bytes of
/// all, and where each starts and the last one ends.
pub(super) fn each_block(store: &Store, mut f: impl FnMut(u64, &[u8], &[usize]) -> Result<()>) -> Result<()> {
    let mut next = 0;
    while next < store.len() {
        let indices: Vec<u64> = (next..store.len()).take(BLOCK_RECORDS).collect();
        each_run(store, &indices, |run| {
            let (packed, offsets) = store.gather_packed(run)?;
            let offsets = offsets
                .into_iter()
                .map(|offset| usize::try_from(offset).map_err(|_| Error::corrupt("a block is too large")))
                .collect::<Result<Vec<_>>>()?;
            f(next, &packed, &offsets)?;
            next += run.len() as u64;
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `f` with one run of `indices` after the other whose records have a block's bytes together, or with single
/// records that have more. The next run is asked for while `f` works on one, so that the disk does not wait.
pub(super) fn each_run(
    store: &Store,
    indices: &[u64],
    mut f: impl FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let mut lengths = Vec::new();
    store.lengths(indices, &mut lengths)?;
    let (mut rest, mut rest_lengths) = (indices, lengths.as_slice());
    let mut current: &[u64] = &[];
    while !rest.is_empty() || !current.is_empty() {
        let count = fitting(rest_lengths, BLOCK_BYTES as u64);
        let (next, tail) = rest.split_at_checked(count).unwrap_or_default();
        store.advise(next);
        if !current.is_empty() {
            f(current)?;
        }
        (current, rest) = (next, tail);
        rest_lengths = rest_lengths.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// How many of the first lengths are at most `most` together, but at least one where there is one.
pub(super) fn fitting(lengths: &[u64], most: u64) -> usize {
    let mut sum = 0_u64;
    let fitting = lengths.iter().take_while(|&&length| {
        sum = sum.saturating_add(length);
        sum <= most
    });
    fitting.count().max(1).min(lengths.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::CreateOptions;

    #[test]
    fn runs_cover_the_indices_in_order_and_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let store = CreateOptions::new().create(dir.path().join("s")).unwrap();
        let lengths = [BLOCK_BYTES / 4, 1, BLOCK_BYTES / 4, BLOCK_BYTES / 4, BLOCK_BYTES / 4, 7, 9];
        for length in lengths {
            store.append_slices([vec![3; length].as_slice()]).unwrap();
        }
        let indices = [6, 0, 2, 3, 4, 1, 5, 5];
        let mut runs = Vec::new();
        each_run(&store, &indices, |run| {
            runs.push(run.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(runs, [vec![6, 0, 2, 3], vec![4, 1, 5, 5]]);
        each_run(&store, &[], |_| panic!("there is nothing to call it with")).unwrap();
        let mut seen = Vec::new();
        each_block(&store, |first, bytes, offsets| {
            seen.extend((first..).zip(offsets.windows(2)).map(|(index, ends)| (index, ends[1] - ends[0])));
            assert_eq!(offsets.last(), Some(&bytes.len()));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, (0..).zip(lengths).collect::<Vec<_>>());
        assert_eq!([fitting(&[5, 5], 3), fitting(&[1, 2, 3], 3), fitting(&[], 3)], [1, 2, 0]);
    }
}
