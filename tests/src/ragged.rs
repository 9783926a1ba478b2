//! Ragged records for tests: stores of them, and what pad and pack make of them, done the obvious way.

use loaderx_core::buffer::bytes_of;
use loaderx_core::format::FormatVersion;
use loaderx_core::view::{Fit, Keep, Piece};
use loaderx_core::{Codec, CreateOptions, Element, Ragged, RaggedWriter};
use tempfile::TempDir;

/// A store of `records` in a temporary directory, of format version 4 so that records may be empty.
pub fn store<T: Element>(records: &[Vec<T>], codec: Codec) -> (TempDir, Ragged) {
    let dir = tempfile::tempdir().unwrap();
    let options = CreateOptions::new().codec(codec).format(FormatVersion::V4);
    let writer = RaggedWriter::create_with(dir.path().join("x"), T::DTYPE, &[], options).unwrap();
    writer.append_records(records.iter().map(Vec::as_slice)).unwrap();
    let ragged = writer.finish().unwrap();
    (dir, ragged)
}

/// Each record cut to `limit` as `keep` says, then padded to `width` on one side.
pub fn pad<T: Element>(
    records: &[Vec<T>],
    width: usize,
    limit: usize,
    keep: Option<Keep>,
    left: bool,
    value: T,
) -> (Vec<T>, Vec<i64>, Vec<u8>) {
    let (mut values, mut lengths, mut mask) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        let kept = record.len().min(limit);
        let record = match keep {
            Some(Keep::End) => &record[record.len() - kept..],
            _ => &record[..kept],
        };
        for place in 0..width {
            let at = if left { place as i64 - (width - kept) as i64 } else { place as i64 };
            let data = usize::try_from(at).ok().filter(|&at| at < kept);
            values.push(data.map_or(value, |at| record[at]));
            mask.push(u8::from(data.is_some()));
        }
        lengths.push(kept as i64);
    }
    (values, lengths, mask)
}

/// Places records of these lengths one after the other, looking at every row for each.
pub fn place(lengths: &[usize], row_length: usize, fit: Fit, longest_first: bool) -> Vec<Piece> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    if longest_first {
        order.sort_by_key(|&record| std::cmp::Reverse(lengths[record]));
    }
    let mut used: Vec<usize> = Vec::new();
    let mut pieces = Vec::new();
    for record in order {
        let mut first = 0;
        while first < lengths[record] {
            let length = (lengths[record] - first).min(row_length);
            let fitting = (0..used.len()).filter(|&row| used[row] + length <= row_length);
            let row = match fit {
                Fit::First => fitting.min(),
                Fit::Best => fitting.min_by_key(|&row| row_length - used[row] - length),
                _ => unreachable!("a way to fit that this oracle does not know"),
            };
            let row = row.unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            pieces.push(Piece { record, first, row, start: used[row], length });
            used[row] += length;
            first += length;
        }
    }
    pieces.sort_by_key(|piece| (piece.row, piece.start));
    pieces
}

/// The bytes of elements, for comparing types that have no total order.
pub fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    bytes_of(elements).to_vec()
}
