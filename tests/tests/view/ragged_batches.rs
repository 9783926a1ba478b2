//! Ragged batches hold each record in full, whatever its length.
#![forbid(unsafe_code)]

use loaderx_core::buffer::Pool;
use loaderx_core::format::FormatVersion;
use loaderx_core::view::{RaggedBatch, Request, Source};
use loaderx_core::{Buffer, Codec, CreateOptions, DType, ErrorKind, Ragged, RaggedWriter, Schema, Store};
use loaderx_tests::ragged::store;
use proptest::prelude::*;

#[test]
fn records_of_rows_keep_their_row_shape() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RaggedWriter::create(dir.path().join("r"), DType::F32, &[2, 2], Codec::zstd()).unwrap();
    let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
    writer.append(&values, &[1, 3, 2]).unwrap();
    drop(writer.finish().unwrap());
    let ragged = Ragged::open(dir.path().join("r")).unwrap();
    assert_eq!(ragged.lengths(&[2, 1, 0]).unwrap(), [2, 3, 1]);
    let batch = ragged.batch(&[2, 0]).unwrap();
    assert_eq!((batch.records(), batch.rows(), batch.max_length()), (2, 3, 2));
    assert_eq!(batch.offsets(), [0, 2, 3]);
    assert_eq!(batch.cu_seqlens().unwrap(), [0, 2, 3]);
    assert_eq!(batch.values_shape(), [3, 2, 2]);
    assert_eq!(batch.record::<f32>(0).unwrap(), &values[16..24]);
    assert_eq!(batch.record::<f32>(1).unwrap(), &values[..4]);
    assert_eq!((batch.length(1), batch.length(2)), (Some(1), None));
    assert_eq!(batch.record::<f32>(2).unwrap_err().kind(), ErrorKind::OutOfRange);
    let first = batch.values().as_bytes().as_ptr();
    assert_eq!(batch.iter::<f32>().unwrap().next().unwrap().as_ptr().cast::<u8>(), first, "no copy");
}

#[test]
fn several_threads_make_the_same_ragged_batch_and_fail_alike() {
    // Long enough that threads are started when they decode; every fifth record is empty.
    let records: Vec<Vec<u16>> =
        (0..2000_u16).map(|i| (0..i % 5 * 173 + u16::from(i % 3 == 0)).map(|at| at ^ i).collect()).collect();
    let indices: Vec<u64> = (0..1777).map(|i| i * 7919 % 2000).collect();
    let beyond: Vec<u64> = indices.iter().map(|&index| index + 1).collect();
    for codec in [Codec::Raw, Codec::zstd()] {
        let (_dir, stored) = store(&records, codec);
        for (view, dtype) in [(stored.clone(), DType::U16), (stored.convert(DType::I64).unwrap(), DType::I64)]
        {
            for threads in [1, 2, 3, 64] {
                let request = Request::new(&indices).threads(threads);
                let batch = view.gather(&request).unwrap().into_ragged().unwrap();
                assert_eq!((batch.records(), batch.dtype()), (indices.len(), dtype));
                for (i, &index) in indices.iter().enumerate() {
                    let expected = &records[index as usize];
                    if dtype == DType::U16 {
                        assert_eq!(batch.record::<u16>(i).unwrap(), expected, "{threads} threads");
                    } else {
                        let expected: Vec<i64> = expected.iter().copied().map(i64::from).collect();
                        assert_eq!(batch.record::<i64>(i).unwrap(), expected, "{threads} threads");
                    }
                }
                let error = view.gather(&Request::new(&beyond).threads(threads)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfRange);
                let none = view.gather(&Request::new(&[]).threads(threads)).unwrap().into_ragged().unwrap();
                assert_eq!(none.records(), 0);
            }
        }
    }
}

#[test]
fn an_empty_record_needs_version_4_and_the_error_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RaggedWriter::create(dir.path().join("v3"), DType::U16, &[], Codec::Raw).unwrap();
    let error = writer.append([1_u16, 2], &[2, 0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("record 1 of this append has 0 rows"), "{error}");
    assert!(error.hint().unwrap().contains("FormatVersion::V4"), "{error}");
    assert_eq!(writer.store().len(), 0, "nothing of a refused append is written");

    let options = CreateOptions::new().format(FormatVersion::V4);
    let writer = RaggedWriter::create_with(dir.path().join("v4"), DType::U16, &[], options).unwrap();
    writer.append([1_u16, 2], &[0, 2, 0]).unwrap();
    let batch = writer.finish().unwrap().batch(&[0, 1, 2, 0]).unwrap();
    assert_eq!(batch.offsets(), [0, 0, 2, 2, 2]);
    assert!(batch.record::<u16>(3).unwrap().is_empty());
}

#[test]
fn records_past_1_mib_need_version_4() {
    let dir = tempfile::tempdir().unwrap();
    let values = vec![7_u8; (1 << 20) + 1];
    let writer = RaggedWriter::create(dir.path().join("v3"), DType::U8, &[], Codec::Raw).unwrap();
    assert!(writer.append(&values, &[1 << 20, 1]).is_ok());
    assert_eq!(writer.append(&values, &[values.len()]).unwrap_err().kind(), ErrorKind::LimitExceeded);
    let options = CreateOptions::new().format(FormatVersion::V4);
    let writer = RaggedWriter::create_with(dir.path().join("v4"), DType::U8, &[], options).unwrap();
    writer.append(&values, &[values.len()]).unwrap();
    assert_eq!(writer.finish().unwrap().batch(&[0]).unwrap().rows(), values.len());
}

#[test]
fn rows_without_elements_are_refused_since_they_cannot_be_counted() {
    let dir = tempfile::tempdir().unwrap();
    for shape in [&[0][..], &[0, 3], &[3, 0]] {
        let error = RaggedWriter::create(dir.path().join("r"), DType::F32, shape, Codec::Raw).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(!dir.path().join("r").exists());
    }
}

#[test]
fn lengths_that_do_not_divide_the_values_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RaggedWriter::create(dir.path().join("r"), DType::U16, &[2], Codec::Raw).unwrap();
    for lengths in [&[2][..], &[1], &[1, usize::MAX], &[]] {
        assert_eq!(writer.append([1_u16; 3], lengths).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(writer.append_records([&[1_u16, 2][..], &[3]]).is_err());
    assert!(writer.append([1_u8; 4], &[1]).is_err());
    assert_eq!(writer.store().len(), 0);
    assert_eq!(writer.append([1_u16; 4], &[1, 1]).unwrap(), 0);
    assert_eq!(writer.append([1_u16; 4], &[2]).unwrap(), 2);
}

#[test]
fn a_record_that_is_no_whole_number_of_rows_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let writer = RaggedWriter::create(&path, DType::F32, &[3], Codec::Raw).unwrap();
    writer.append(vec![0.0_f32; 9], &[2, 1]).unwrap();
    drop(writer.finish().unwrap());
    // A schema of another row: 24 bytes are three rows of it, 12 are one and a half.
    let other = Schema::ragged(DType::F32, &[2]).unwrap().encode("raw").unwrap();
    std::fs::write(path.join("schema.msgpack"), other).unwrap();
    let ragged = Ragged::open(&path).unwrap();
    assert!(ragged.batch(&[0]).is_ok());
    for error in [ragged.batch(&[0, 1]).unwrap_err(), ragged.lengths(&[1]).unwrap_err()] {
        assert!(error.is_corrupt() && error.record() == Some(1), "{error}");
    }
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let values = || Buffer::from(vec![1_i32; 6]);
    assert!(RaggedBatch::from_parts(values(), vec![0, 2, 3], vec![2]).is_ok());
    for (offsets, shape) in [
        (vec![], vec![]),
        (vec![0], vec![]),
        (vec![1, 6], vec![]),
        (vec![0, 4, 3, 6], vec![]),
        (vec![0, 7], vec![]),
        (vec![0, 6], vec![2]),
        (vec![0, 1], vec![4]),
        (vec![0, 0], vec![0]),
        (vec![0, 6], vec![usize::MAX, 2]),
    ] {
        assert!(RaggedBatch::from_parts(values(), offsets, shape).is_err());
    }
}

#[test]
fn a_dense_store_and_a_plain_one_are_not_ragged() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::create(dir.path().join("plain"), CreateOptions::new()).unwrap());
    assert_eq!(Ragged::open(dir.path().join("plain")).unwrap_err().kind(), ErrorKind::SchemaMismatch);
}

fn records() -> impl Strategy<Value = Vec<Vec<i32>>> {
    prop::collection::vec(prop::collection::vec(any::<i32>(), 0..20), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_indices_gather_each_record_in_full(
        records in records(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
        zstd in any::<bool>(),
    ) {
        let (_dir, ragged) = store(&records, if zstd { Codec::zstd() } else { Codec::Raw });
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(records.len())).collect();
        let indices: Vec<u64> = picks.iter().map(|&pick| pick as u64).collect();
        let pool = Pool::new();
        let request = Request::new(&indices).memory(&pool);
        let batch = ragged.gather(&request).unwrap().into_ragged().unwrap();
        let expected: Vec<&[i32]> = picks.iter().map(|&pick| records[pick].as_slice()).collect();
        prop_assert_eq!(batch.iter::<i32>().unwrap().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(ragged.batch_bytes(&indices).unwrap() as usize, batch.values().as_bytes().len());
        // Widened on the way.
        let wide = ragged.convert(DType::I64).unwrap().batch(&indices).unwrap();
        prop_assert_eq!(wide.offsets(), batch.offsets());
        let expected: Vec<i64> = expected.concat().into_iter().map(i64::from).collect();
        prop_assert_eq!(wide.into_vec::<i64>().unwrap().0, expected);
    }
}
