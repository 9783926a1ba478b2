//! Every element type and every shape survives a round trip, and what does not fit is refused before it is written.
#![forbid(unsafe_code)]

use half::{bf16, f16};
use loaderx_core::buffer::{Allocator, Pool, Vecs, bytes_of};
use loaderx_core::format::FormatVersion;
use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{
    Codec, CreateOptions, DType, Dense, DenseWriter, Element, ErrorKind, Ragged, RaggedWriter, Store,
};
use proptest::prelude::*;

/// Writes `elements` as dense records of `(2,)` and as ragged ones, and gathers them in another order.
fn round_trip<T: Element>(elements: Vec<T>) {
    assert_eq!(elements.len() % 4, 0);
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("d"), T::DTYPE, &[2], Codec::zstd()).unwrap();
    writer.append(&elements).unwrap();
    drop(writer.finish().unwrap());
    let dense = Dense::open(dir.path().join("d")).unwrap();
    assert_eq!((dense.dtype(), dense.item_shape()), (T::DTYPE, &[2][..]));
    let indices: Vec<u64> = (0..elements.len() as u64 / 2).rev().collect();
    let expected: Vec<T> = elements.chunks(2).rev().flatten().copied().collect();
    let pool = Pool::new();
    let allocators: [&dyn Allocator; 2] = [&Vecs, &pool];
    for memory in allocators {
        let request = Request::new(&indices).memory(memory);
        let batch = dense.gather(&request).unwrap().into_dense().unwrap();
        assert_eq!(batch.data().as_bytes(), bytes_of(&expected), "{}", T::DTYPE);
        assert_eq!(bytes_of(&batch.into_vec::<T>().unwrap().0), bytes_of(&expected));
    }

    let writer = RaggedWriter::create(dir.path().join("r"), T::DTYPE, &[], Codec::Raw).unwrap();
    writer.append(&elements, &[1, elements.len() - 1]).unwrap();
    drop(writer.finish().unwrap());
    let ragged = Ragged::open(dir.path().join("r")).unwrap();
    let batch = ragged.batch(&[1, 0, 1]).unwrap();
    assert_eq!(bytes_of(batch.record::<T>(0).unwrap()), bytes_of(&elements[1..]));
    assert_eq!(bytes_of(batch.record::<T>(1).unwrap()), bytes_of(&elements[..1]));
}

#[test]
fn every_element_type_survives_the_round_trip_bit_for_bit() {
    round_trip::<u8>(vec![0, 1, 254, 255]);
    round_trip::<u16>(vec![0, 1, 256, u16::MAX]);
    round_trip::<u32>(vec![0, 1, 1 << 31, u32::MAX]);
    round_trip::<u64>(vec![0, 1 << 53, (1 << 53) + 1, u64::MAX]);
    round_trip::<i8>(vec![0, -1, i8::MIN, i8::MAX]);
    round_trip::<i16>(vec![0, -1, i16::MIN, i16::MAX]);
    round_trip::<i32>(vec![0, -1, i32::MIN, i32::MAX]);
    round_trip::<i64>(vec![0, -1, i64::MIN, i64::MAX]);
    round_trip::<f16>([0x0000, 0x8001, 0x7c00, 0x7e01].map(f16::from_bits).to_vec());
    round_trip::<bf16>([0x0000, 0x8001, 0x7f80, 0x7fc1].map(bf16::from_bits).to_vec());
    round_trip::<f32>(vec![-0.0, f32::MIN_POSITIVE / 2.0, f32::INFINITY, f32::from_bits(0x7fc0_0001)]);
    round_trip::<f64>(vec![
        -0.0,
        f64::MIN_POSITIVE / 2.0,
        f64::INFINITY,
        f64::from_bits(0x7ff8_0000_0000_0001),
    ]);
}

#[test]
fn truth_values_travel_as_bytes_of_0_and_1() {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("b"), DType::Bool, &[2], Codec::Raw).unwrap();
    writer.append([1_u8, 0, 0, 1]).unwrap();
    let error = writer.append([1_u8, 0, 3, 1]).unwrap_err();
    assert!(error.to_string().contains("record 1") && error.to_string().contains('3'), "{error}");
    assert_eq!(writer.store().len(), 2);
    let dense = writer.finish().unwrap();
    let batch = dense.batch(&[1, 0]).unwrap();
    assert_eq!((batch.dtype(), batch.as_slice::<u8>().unwrap()), (DType::Bool, &[0, 1, 1, 0][..]));
    assert!(batch.as_slice::<i8>().is_err());
}

#[test]
fn a_stored_truth_value_that_is_none_is_an_error_that_names_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let dense = DenseWriter::create(dir.path().join("d"), DType::Bool, &[3], Codec::Raw).unwrap();
    // Bypassing the view's own check, as damage would.
    dense.store().append_fixed(&[0, 1, 1, 0, 0, 7, 1, 1, 1], 3).unwrap();
    let dense = dense.finish().unwrap();
    assert!(dense.batch(&[2, 0]).is_ok());
    let error = dense.batch(&[2, 0, 1]).unwrap_err();
    assert!(error.is_corrupt() && error.record() == Some(1), "{error}");
    let error = dense.to_f32().batch(&[0, 1]).unwrap_err();
    assert!(error.is_corrupt() && error.record() == Some(1), "{error}");

    let ragged = RaggedWriter::create(dir.path().join("r"), DType::Bool, &[], Codec::Raw).unwrap();
    ragged.store().append(&[0, 1, 1, 0, 2, 1], &[0, 1, 3]).unwrap();
    let ragged = ragged.finish().unwrap();
    for error in [
        ragged.batch(&[0, 1, 2]).unwrap_err(),
        ragged.padded(loaderx_core::view::Pad::to_longest()).unwrap().batch(&[1, 2]).unwrap_err(),
        ragged.convert(DType::I64).unwrap().batch(&[2]).unwrap_err(),
    ] {
        assert!(error.is_corrupt() && error.record() == Some(2), "{error}");
    }
}

#[test]
fn scalars_and_shapes_without_elements_keep_their_shape() {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("scalar"), DType::I64, &[], Codec::Raw).unwrap();
    writer.append([5_i64, 6, 7]).unwrap();
    let scalars = writer.finish().unwrap();
    let batch = scalars.batch(&[2, 0]).unwrap();
    assert_eq!((batch.shape(), batch.as_slice::<i64>().unwrap()), (&[2][..], &[7, 5][..]));

    for (name, shape) in [("a", &[0][..]), ("b", &[0, 3]), ("c", &[3, 0])] {
        let writer = DenseWriter::create(dir.path().join(name), DType::F32, shape, Codec::zstd()).unwrap();
        assert_eq!(writer.store().format(), FormatVersion::V4);
        let error = writer.append::<f32>([]).unwrap_err();
        assert!(error.hint().unwrap().contains("append_empty"), "{error}");
        assert_eq!(writer.append_empty(5).unwrap(), 0);
        drop(writer.finish().unwrap());
        let dense = Dense::open(dir.path().join(name)).unwrap();
        let batch = dense.batch(&[4, 0, 2]).unwrap();
        assert_eq!(batch.shape(), [&[3], shape].concat());
        assert!(batch.as_slice::<f32>().unwrap().is_empty());
        assert!(dense.batch(&[5]).is_err());
        assert_eq!(dense.convert(DType::F64).unwrap().batch(&[1]).unwrap().shape(), [&[1], shape].concat());
    }
    let writer = DenseWriter::create(dir.path().join("full"), DType::F32, &[2], Codec::Raw).unwrap();
    assert!(writer.append_empty(1).is_err());
}

#[test]
fn a_batch_of_no_records_is_empty_for_every_view() {
    let dir = tempfile::tempdir().unwrap();
    let dense = DenseWriter::create(dir.path().join("d"), DType::F32, &[2, 3], Codec::Raw).unwrap();
    let dense = dense.finish().unwrap();
    assert_eq!(dense.batch(&[]).unwrap().shape(), [0, 2, 3]);
    let ragged = RaggedWriter::create(dir.path().join("r"), DType::F32, &[4], Codec::Raw).unwrap();
    let ragged = ragged.finish().unwrap();
    assert_eq!(ragged.batch(&[]).unwrap().values_shape(), [0, 4]);
    assert_eq!(ragged.batch(&[]).unwrap().offsets(), [0]);
}

#[test]
fn large_dense_records_choose_version_4_and_small_ones_stay_readable_in_python() {
    let dir = tempfile::tempdir().unwrap();
    for (name, elements, version) in
        [("a", 1 << 18, FormatVersion::V3), ("b", (1 << 18) + 1, FormatVersion::V4)]
    {
        let writer = DenseWriter::create(dir.path().join(name), DType::F32, &[elements], Codec::Raw).unwrap();
        assert_eq!(writer.store().format(), version);
        writer.append(vec![1.0_f32; elements]).unwrap();
        assert_eq!(writer.finish().unwrap().batch(&[0]).unwrap().data().len(), elements);
    }
    let error = DenseWriter::create(dir.path().join("c"), DType::F64, &[1 << 29], Codec::Raw).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(!dir.path().join("c").exists());
}

#[test]
fn another_type_or_shape_is_refused_before_the_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    let writer = DenseWriter::create(&path, DType::F32, &[2], Codec::Raw).unwrap();
    let size = |name: &str| std::fs::metadata(path.join(name)).unwrap().len();
    let before = (size("0.zr"), size("meta.zr"));
    assert_eq!(writer.append([1_i32, 2]).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    assert_eq!(writer.append([1.0_f32, 2.0, 3.0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!((size("0.zr"), size("meta.zr"), writer.store().len()), (before.0, before.1, 0));
    drop(writer);
    for (dtype, shape) in
        [(DType::I32, &[2][..]), (DType::F32, &[3]), (DType::F32, &[2, 1]), (DType::F32, &[])]
    {
        let error = DenseWriter::open(&path, dtype, shape).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    }
    assert_eq!(RaggedWriter::open(&path, DType::F32, &[2]).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    assert_eq!(Ragged::open(&path).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    assert!(DenseWriter::open(&path, DType::F32, &[2]).is_ok());
    let plain = dir.path().join("plain");
    drop(Store::create(&plain, CreateOptions::new()).unwrap());
    assert_eq!(Dense::open(&plain).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    assert_eq!(DenseWriter::open(&plain, DType::F32, &[2]).unwrap_err().kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn a_column_tells_its_kind_and_refuses_to_be_another() {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("d"), DType::U16, &[3], Codec::Raw).unwrap();
    writer.append([1_u16, 2, 3]).unwrap();
    let column = writer.finish().unwrap().gather(&Request::new(&[0])).unwrap();
    assert_eq!(
        (column.records(), column.bytes(), column.dtype(), column.kind()),
        (1, 6, DType::U16, "dense")
    );
    assert!(matches!(column, Column::Dense(_)));
    let error = column.into_ragged().unwrap_err();
    assert!(error.to_string().contains("dense, not ragged"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_indices_gather_what_was_appended(
        records in prop::collection::vec(any::<[u16; 3]>(), 1..40),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        zstd in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let codec = if zstd { Codec::zstd() } else { Codec::Raw };
        let writer = DenseWriter::create(dir.path().join("d"), DType::U16, &[3], codec).unwrap();
        writer.append(records.concat()).unwrap();
        let dense = writer.finish().unwrap();
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(records.len())).collect();
        let indices: Vec<u64> = picks.iter().map(|&pick| pick as u64).collect();
        let expected: Vec<u16> = picks.iter().flat_map(|&pick| records[pick]).collect();
        prop_assert_eq!(dense.batch(&indices).unwrap().into_vec::<u16>().unwrap(), (expected, vec![picks.len(), 3]));
    }
}
