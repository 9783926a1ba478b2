//! Padded batches equal what a plain loop pads, whether the records are padded after the gather or in it.
#![forbid(unsafe_code)]

use loaderx_core::buffer::Pool;
use loaderx_core::view::{Keep, Pad, PaddedBatch, Request, Side, Source};
use loaderx_core::{Codec, DType, ErrorKind, RaggedWriter};
use loaderx_tests::ragged::{pad, store};
use proptest::prelude::*;

#[test]
fn padding_is_refused_where_it_would_lose_or_misread_something() {
    let (_dir, ragged) = store(&[vec![1_u16, 2], vec![1; 9]], Codec::Raw);
    let padded = ragged.padded(Pad::to_length(8)).unwrap();
    let error = padded.batch(&[0, 1]).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::LimitExceeded, Some(1)));
    assert!(error.to_string().contains("9 rows, more than the 8"), "{error}");
    assert!(error.hint().unwrap().contains("truncate"));
    assert!(padded.batch(&[0]).is_ok());
    assert_eq!(
        ragged.batch(&[0, 1]).unwrap().pad(&Pad::to_length(8)).unwrap_err().kind(),
        ErrorKind::LimitExceeded
    );

    for wrong in [
        Pad::to_longest().value(-1),
        Pad::to_longest().value(65_536),
        Pad::to_longest().value(0.5),
        Pad::to_longest().multiple_of(0),
        Pad::to_length(6).multiple_of(4),
        Pad::to_longest().at_most(6).multiple_of(4),
        Pad::to_length(8).at_most(4),
    ] {
        assert_eq!(ragged.padded(wrong).unwrap_err().kind(), ErrorKind::InvalidArgument, "{wrong}");
        assert!(ragged.batch(&[0]).unwrap().pad(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rows_of_several_elements_are_padded_as_rows() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RaggedWriter::create(dir.path().join("r"), DType::F32, &[2], Codec::Raw).unwrap();
    writer.append([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 2]).unwrap();
    let ragged = writer.finish().unwrap();
    let batch = ragged.padded(Pad::to_longest().value(-1).left()).unwrap().batch(&[0, 1]).unwrap();
    assert_eq!(batch.values().shape(), [2, 2, 2]);
    assert_eq!(batch.values().as_slice::<f32>().unwrap(), [-1.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(batch.mask().shape(), [2, 2]);
    assert_eq!(batch.mask_of::<f32>(), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(batch.side(), Side::Left);
}

#[test]
fn records_without_rows_pad_to_nothing_but_padding() {
    let (_dir, ragged) = store(&[vec![], vec![], vec![5_i64]], Codec::Raw);
    let padded = ragged.padded(Pad::to_longest().value(9)).unwrap();
    assert_eq!(padded.batch(&[0, 1]).unwrap().values().shape(), [2, 0]);
    assert_eq!(padded.batch(&[]).unwrap().values().shape(), [0, 0]);
    let batch = padded.batch(&[0, 2]).unwrap();
    assert_eq!((batch.values().as_slice::<i64>().unwrap(), batch.lengths()), (&[9, 5][..], &[0, 1][..]));
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let values = || loaderx_core::DenseBatch::from_parts(vec![1_u8; 6].into(), vec![2, 3]).unwrap();
    assert!(PaddedBatch::from_parts(values(), vec![3, 0], Side::Right).is_ok());
    for lengths in [vec![3], vec![3, 4], vec![3, -1], vec![]] {
        assert!(PaddedBatch::from_parts(values(), lengths, Side::Right).is_err());
    }
}

fn settings() -> impl Strategy<Value = (Pad, Option<usize>, usize, usize, Option<Keep>, bool, i32)> {
    let keep = prop_oneof![Just(None), Just(Some(Keep::Start)), Just(Some(Keep::End))];
    (any::<bool>(), 0..4_usize, 1..5_usize, any::<bool>(), keep, any::<bool>(), any::<i32>()).prop_map(
        |(fixed, blocks, multiple, bounded, keep, left, value)| {
            let bound = blocks * multiple;
            let mut pad = if fixed { Pad::to_length(bound) } else { Pad::to_longest() };
            pad = pad.multiple_of(multiple).value(value);
            if bounded {
                pad = pad.at_most(bound);
            }
            if let Some(keep) = keep {
                pad = pad.truncate(keep);
            }
            if left {
                pad = pad.left();
            }
            let limit = if fixed || bounded { bound } else { usize::MAX };
            (pad, fixed.then_some(bound), multiple, limit, keep, left, value)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_padding_equals_the_plain_loop(
        records in prop::collection::vec(prop::collection::vec(any::<i32>(), 0..14), 1..12),
        (pad_by, width, multiple, limit, keep, left, value) in settings(),
        threads in 1..4_usize,
        zstd in any::<bool>(),
    ) {
        let (_dir, ragged) = store(&records, if zstd { Codec::zstd() } else { Codec::Raw });
        let indices: Vec<u64> = (0..records.len() as u64).rev().collect();
        let reversed: Vec<Vec<i32>> = records.iter().rev().cloned().collect();
        let after = ragged.batch(&indices).unwrap().pad(&pad_by);
        let pool = Pool::new();
        let request = Request::new(&indices).threads(threads).memory(&pool);
        let source = ragged.padded(pad_by).unwrap();
        let within = source.gather(&request);
        if keep.is_none() && records.iter().any(|record| record.len() > limit) {
            prop_assert_eq!(after.unwrap_err().kind(), ErrorKind::LimitExceeded);
            prop_assert_eq!(within.unwrap_err().kind(), ErrorKind::LimitExceeded);
            return Ok(());
        }
        let longest = records.iter().map(|record| record.len().min(limit)).max().unwrap_or(0);
        let width = width.unwrap_or(longest.next_multiple_of(multiple));
        let (values, lengths, mask) = pad(&reversed, width, limit, keep, left, value);
        let within = within.unwrap().into_padded().unwrap();
        prop_assert_eq!(source.batch_bytes(&indices).unwrap() as usize, values.len() * 4);
        for batch in [after.unwrap(), within] {
            prop_assert_eq!(batch.values().shape(), &[records.len(), width][..]);
            prop_assert_eq!(batch.values().as_slice::<i32>().unwrap(), &values[..]);
            prop_assert_eq!(batch.lengths(), &lengths[..]);
            prop_assert_eq!(batch.mask().into_vec::<u8>().unwrap().0, mask.clone());
        }
        let wide = ragged.convert(DType::I64).unwrap().padded(pad_by).unwrap().batch(&indices).unwrap();
        let expected: Vec<i64> = values.into_iter().map(i64::from).collect();
        prop_assert_eq!(wide.values().as_slice::<i64>().unwrap(), &expected[..]);
    }
}
