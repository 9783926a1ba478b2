//! Packed batches hold every record once, where the naive placement puts it, with ids that keep sequences apart.
#![forbid(unsafe_code)]

use loaderx_core::view::{Fit, Pack, PackedBatch, Piece, Request, Source};
use loaderx_core::{Codec, DType, DenseBatch, ErrorKind, RaggedWriter};
use loaderx_tests::ragged::{place, store};
use proptest::prelude::*;

#[test]
fn first_fit_and_best_fit_choose_their_rows_by_name() {
    let records: Vec<Vec<i64>> = [3, 6, 4, 1].iter().map(|&length| vec![length as i64; length]).collect();
    let (_dir, ragged) = store(&records, Codec::Raw);
    let rows = |pack: Pack| {
        let batch = ragged.packed(pack).unwrap().batch(&[0, 1, 2, 3]).unwrap();
        let row_of = |record| batch.pieces().iter().find(|piece| piece.record == record).unwrap().row;
        [0, 1, 2, 3].map(row_of)
    };
    // 3 and 4 share row 0, 6 is in row 1; the last goes where it fits first, or best.
    assert_eq!(rows(Pack::into_rows_of(8)), [0, 1, 0, 0]);
    assert_eq!(rows(Pack::into_rows_of(7).fit(Fit::First)), [0, 1, 0, 1]);
    assert_eq!(rows(Pack::into_rows_of(9).fit(Fit::First)), [0, 0, 1, 1]);
    assert_eq!(rows(Pack::into_rows_of(10).fit(Fit::Best)), [0, 0, 1, 0]);
    assert_eq!(rows(Pack::into_rows_of(10).fit(Fit::Best).longest_first()), [1, 0, 0, 1]);
}

#[test]
fn a_record_longer_than_a_row_is_refused_or_split() {
    let (_dir, ragged) = store(&[vec![1_u16, 2], vec![1, 2, 3, 4, 5, 6, 7]], Codec::Raw);
    let error = ragged.packed(Pack::into_rows_of(3)).unwrap().batch(&[0, 1]).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::LimitExceeded, Some(1)));
    assert!(error.hint().unwrap().contains("split_long"));
    assert!(ragged.batch(&[0, 1]).unwrap().pack(&Pack::into_rows_of(3)).is_err());

    let batch = ragged.packed(Pack::into_rows_of(3).split_long()).unwrap().batch(&[0, 1]).unwrap();
    assert_eq!(batch.values().as_slice::<u16>().unwrap(), [1, 2, 7, 1, 2, 3, 4, 5, 6]);
    assert_eq!(batch.position_ids(), [0, 1, 0, 0, 1, 2, 0, 1, 2]);
    assert_eq!(batch.segment_ids(), [1, 1, 2, 1, 1, 1, 1, 1, 1]);
    assert_eq!(batch.pieces()[1], Piece { record: 1, first: 6, row: 0, start: 2, length: 1 });
}

#[test]
fn a_fixed_number_of_rows_is_filled_up_or_refused() {
    let (_dir, ragged) = store(&[vec![1_u8, 2], vec![3, 4]], Codec::Raw);
    let batch = ragged.packed(Pack::into_rows_of(3).rows(3).value(9)).unwrap().batch(&[0, 1]).unwrap();
    assert_eq!(batch.values().as_slice::<u8>().unwrap(), [1, 2, 9, 3, 4, 9, 9, 9, 9]);
    assert_eq!(batch.cu_seqlens().unwrap(), [0, 2, 3, 5, 6, 9]);
    assert_eq!(batch.row_cu_seqlens(2), [0]);
    assert_eq!((batch.used(), batch.rows(), batch.records()), (4, 3, 2));
    let error = ragged.packed(Pack::into_rows_of(3).rows(1)).unwrap().batch(&[0, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(ragged.packed(Pack::into_rows_of(0)).is_err());
    assert!(ragged.packed(Pack::into_rows_of(1 << 31)).is_err());
    assert!(ragged.packed(Pack::into_rows_of(4).value(256)).is_err());
}

#[test]
fn rows_of_several_elements_are_packed_as_rows() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RaggedWriter::create(dir.path().join("r"), DType::U8, &[2], Codec::Raw).unwrap();
    writer.append([1_u8, 2, 3, 4, 5, 6], &[1, 2]).unwrap();
    let ragged = writer.finish().unwrap();
    let batch = ragged.packed(Pack::into_rows_of(4)).unwrap().batch(&[1, 0]).unwrap();
    assert_eq!(batch.values().shape(), [1, 4, 2]);
    assert_eq!(batch.values().as_slice::<u8>().unwrap(), [3, 4, 5, 6, 1, 2, 0, 0]);
    assert_eq!(batch.segment_ids(), [1, 1, 2, 0]);
}

#[test]
fn pieces_that_do_not_follow_each_other_are_refused() {
    let values = || DenseBatch::from_parts(vec![1_u8; 8].into(), vec![2, 4]).unwrap();
    let piece = |row, start, length| Piece { record: 0, first: 0, row, start, length };
    assert!(
        PackedBatch::from_parts(values(), vec![piece(0, 0, 2), piece(0, 2, 2), piece(1, 0, 1)], 1).is_ok()
    );
    for pieces in [
        vec![piece(0, 1, 2)],
        vec![piece(0, 0, 5)],
        vec![piece(2, 0, 1)],
        vec![piece(1, 0, 1), piece(0, 0, 1)],
        vec![piece(0, 0, 2), piece(0, 1, 2)],
    ] {
        assert!(PackedBatch::from_parts(values(), pieces, 1).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_packing_equals_the_naive_placement(
        records in prop::collection::vec(prop::collection::vec(1..=i32::MAX, 0..12), 0..20),
        row_length in 1..16_usize,
        best in any::<bool>(),
        longest_first in any::<bool>(),
        zstd in any::<bool>(),
    ) {
        let (_dir, ragged) = store(&records, if zstd { Codec::zstd() } else { Codec::Raw });
        let fit = if best { Fit::Best } else { Fit::First };
        let mut pack = Pack::into_rows_of(row_length).fit(fit).split_long().value(-7);
        if longest_first {
            pack = pack.longest_first();
        }
        let lengths: Vec<usize> = records.iter().map(Vec::len).collect();
        let pieces = place(&lengths, row_length, fit, longest_first);
        let rows = pieces.last().map_or(0, |piece| piece.row + 1);
        let places = rows * row_length;
        let (mut values, mut segments, mut positions) = (vec![-7; places], vec![0; places], vec![0; places]);
        let mut ends = vec![0];
        for row in 0..rows {
            let in_row: Vec<&Piece> = pieces.iter().filter(|piece| piece.row == row).collect();
            for (segment, piece) in in_row.iter().enumerate() {
                let at = row * row_length + piece.start;
                for i in 0..piece.length {
                    values[at + i] = records[piece.record][piece.first + i];
                    segments[at + i] = segment as i32 + 1;
                    positions[at + i] = i as i32;
                }
                ends.push((at + piece.length) as i32);
            }
            ends.push(((row + 1) * row_length) as i32);
        }
        ends.dedup();
        let indices: Vec<u64> = (0..records.len() as u64).collect();
        let source = ragged.packed(pack).unwrap();
        let within = source.gather(&Request::new(&indices)).unwrap().into_packed().unwrap();
        prop_assert_eq!(source.batch_bytes(&indices).unwrap() as usize, places * 4);
        for batch in [ragged.batch(&indices).unwrap().pack(&pack).unwrap(), within] {
            prop_assert_eq!(batch.pieces(), &pieces[..]);
            prop_assert_eq!(batch.values().shape(), &[rows, row_length][..]);
            prop_assert_eq!(batch.values().as_slice::<i32>().unwrap(), &values[..]);
            prop_assert_eq!(batch.segment_ids(), segments.clone());
            prop_assert_eq!(batch.position_ids(), positions.clone());
            prop_assert_eq!(batch.cu_seqlens().unwrap(), ends.clone());
        }
        let wide = ragged.convert(DType::F64).unwrap().packed(pack).unwrap().batch(&indices).unwrap();
        let expected: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assert_eq!(wide.values().as_slice::<f64>().unwrap(), &expected[..]);
    }
}
