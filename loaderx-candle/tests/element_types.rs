//! Tensors equal the stored values, for every element type, and share the gathered memory where the type stays.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use candle_core::{CpuStorage, DType as CandleDType, Storage, Tensor, WithDType};
use half::{bf16, f16};
use loaderx_candle::{Columns, TensorBatch, TensorLoader, tensor_dtype};
use loaderx_core::sampler::Sequential;
use loaderx_core::view::Column;
use loaderx_core::{Codec, DType, Dense, DenseWriter, Element, ErrorKind, Loader};

const STREAM: &str = "x";

fn store(dtype: DType, item_shape: &[usize], bytes: &[u8]) -> (tempfile::TempDir, Dense) {
    let directory = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(directory.path().join("store"), dtype, item_shape, Codec::Raw).unwrap();
    writer.append_bytes(bytes).unwrap();
    let view = writer.finish().unwrap();
    (directory, view)
}

/// The records of a store as one tensor, in stored order.
fn delivered(view: Dense, columns: Columns) -> candle_core::Result<Tensor> {
    let records = view.len();
    let sampler = Sequential::new(records, usize::try_from(records).unwrap()).unwrap();
    let builder = Loader::builder().stream(STREAM, view).sampler(sampler).workers(1);
    let batch: TensorBatch = TensorLoader::new(builder, columns)?.next().unwrap()?;
    batch.tensor(STREAM).cloned()
}

fn bytes_of<T: Element, const N: usize>(values: &[T], to_le: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| to_le(value)).collect()
}

/// Two records of two elements each, as they come out.
fn round_trip<T: WithDType>(dtype: DType, bytes: &[u8]) -> Vec<Vec<T>> {
    let (_kept, view) = store(dtype, &[2], bytes);
    let tensor = delivered(view, Columns::new()).unwrap();
    assert_eq!(Some(tensor.dtype()), tensor_dtype(dtype));
    assert_eq!(tensor.dims(), [2, 2]);
    assert!(!tensor.track_op());
    tensor.to_vec2::<T>().unwrap()
}

macro_rules! keeps_its_type {
    ($($test:ident: $dtype:ident, $rust:ty, [$a:expr, $b:expr, $c:expr, $d:expr];)+) => {$(
        #[test]
        fn $test() {
            let bytes = bytes_of(&[$a, $b, $c, $d], <$rust>::to_le_bytes);
            assert_eq!(round_trip::<$rust>(DType::$dtype, &bytes), [[$a, $b], [$c, $d]]);
        }
    )+};
}

keeps_its_type! {
    u8_stays: U8, u8, [0_u8, 1, 254, u8::MAX];
    u32_stays: U32, u32, [0_u32, 1, 1 << 31, u32::MAX];
    i16_stays: I16, i16, [0_i16, -1, i16::MIN, i16::MAX];
    i32_stays: I32, i32, [0_i32, -1, i32::MIN, i32::MAX];
    i64_stays: I64, i64, [0_i64, -1, i64::MIN, i64::MAX];
    f16_stays: F16, f16, [f16::ZERO, f16::NEG_ONE, f16::MIN_POSITIVE, f16::INFINITY];
    bf16_stays: BF16, bf16, [bf16::ZERO, bf16::NEG_ONE, bf16::MIN_POSITIVE, bf16::MAX];
    f32_stays: F32, f32, [0.0_f32, -1.5, f32::MIN_POSITIVE, f32::NEG_INFINITY];
    f64_stays: F64, f64, [0.0_f64, -1.5, f64::MIN_POSITIVE, f64::MAX];
}

#[test]
fn truth_values_become_bytes() {
    assert_eq!(round_trip::<u8>(DType::Bool, &[0, 1, 1, 0]), [[0, 1], [1, 0]]);
}

#[test]
fn signed_bytes_are_widened() {
    let bytes = bytes_of(&[0_i8, -1, i8::MIN, i8::MAX], i8::to_le_bytes);
    assert_eq!(round_trip::<i16>(DType::I8, &bytes), [[0, -1], [-128, 127]]);
}

#[test]
fn unsigned_16_bit_values_are_widened() {
    let bytes = bytes_of(&[0_u16, 1, 1 << 15, u16::MAX], u16::to_le_bytes);
    assert_eq!(round_trip::<u32>(DType::U16, &bytes), [[0, 1], [1 << 15, 65535]]);
}

#[test]
fn unsigned_64_bit_values_are_checked() {
    let largest = i64::MAX.cast_unsigned();
    let bytes = bytes_of(&[0, 1, 1 << 40, largest], u64::to_le_bytes);
    assert_eq!(round_trip::<i64>(DType::U64, &bytes), [[0, 1], [1 << 40, i64::MAX]]);

    let (_kept, view) = store(DType::U64, &[], &bytes_of(&[7, largest + 1], u64::to_le_bytes));
    let error = delivered(view, Columns::new()).unwrap_err().to_string();
    assert!(error.contains("element 1") && error.contains("9223372036854775808 (u64)"), "{error}");
}

#[test]
fn every_element_type_has_a_tensor_type() {
    for dtype in DType::ALL {
        assert!(tensor_dtype(dtype).is_some(), "{dtype}");
    }
}

fn ids(dtype: DType, bytes: &[u8]) -> candle_core::Result<Vec<u32>> {
    let (_kept, view) = store(dtype, &[], bytes);
    let tensor = delivered(view, Columns::new().ids(STREAM))?;
    assert_eq!(tensor.dtype(), CandleDType::U32);
    tensor.to_vec1()
}

#[test]
fn labels_of_every_whole_number_type_leave_as_u32() {
    assert_eq!(ids(DType::Bool, &[0, 1]).unwrap(), [0, 1]);
    assert_eq!(ids(DType::U8, &[0, 255]).unwrap(), [0, 255]);
    assert_eq!(ids(DType::U16, &bytes_of(&[3_u16, u16::MAX], u16::to_le_bytes)).unwrap(), [3, 65535]);
    assert_eq!(ids(DType::U32, &bytes_of(&[3, u32::MAX - 1], u32::to_le_bytes)).unwrap(), [3, u32::MAX - 1]);
    assert_eq!(ids(DType::U64, &bytes_of(&[3_u64, 1 << 31], u64::to_le_bytes)).unwrap(), [3, 1 << 31]);
    assert_eq!(ids(DType::I8, &bytes_of(&[3_i8, i8::MAX], i8::to_le_bytes)).unwrap(), [3, 127]);
    assert_eq!(ids(DType::I16, &bytes_of(&[3_i16, i16::MAX], i16::to_le_bytes)).unwrap(), [3, 32767]);
    assert_eq!(ids(DType::I32, &bytes_of(&[3_i32, i32::MAX], i32::to_le_bytes)).unwrap(), [3, 2_147_483_647]);
    assert_eq!(ids(DType::I64, &bytes_of(&[3_i64, 1 << 31], i64::to_le_bytes)).unwrap(), [3, 1 << 31]);
}

#[test]
fn labels_that_candle_cannot_use_are_named() {
    let too_large = u64::from(u32::MAX);
    for (dtype, bytes, value) in [
        (DType::I8, bytes_of(&[0, -1_i8], i8::to_le_bytes), "-1 (i8)"),
        (DType::I16, bytes_of(&[0, -300_i16], i16::to_le_bytes), "-300 (i16)"),
        (DType::I32, bytes_of(&[0, -1_i32], i32::to_le_bytes), "-1 (i32)"),
        (DType::I64, bytes_of(&[0, -1_i64], i64::to_le_bytes), "-1 (i64)"),
        (DType::I64, bytes_of(&[0, i64::from(u32::MAX)], i64::to_le_bytes), "4294967295 (i64)"),
        (DType::U32, bytes_of(&[0, u32::MAX], u32::to_le_bytes), "4294967295 (u32)"),
        (DType::U64, bytes_of(&[0, too_large], u64::to_le_bytes), "4294967295 (u64)"),
        (DType::U64, bytes_of(&[0, too_large + 1], u64::to_le_bytes), "4294967296 (u64)"),
    ] {
        let error = ids(dtype, &bytes).unwrap_err().to_string();
        assert!(error.contains("element 1") && error.contains(value), "{dtype}: {error}");
        assert!(error.contains("stream") && error.contains("\"x\""), "{error}");
    }
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let error = ids(dtype, &vec![0; dtype.size()]).unwrap_err().to_string();
        assert!(error.contains(dtype.name()) && error.contains("whole numbers"), "{error}");
    }
}

/// Where the elements of a tensor on the CPU are.
fn address(tensor: &Tensor) -> usize {
    let (storage, _) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { return 0 };
    match storage {
        CpuStorage::U8(vec) => vec.as_ptr().addr(),
        CpuStorage::U32(vec) => vec.as_ptr().addr(),
        CpuStorage::I16(vec) => vec.as_ptr().addr(),
        CpuStorage::I32(vec) => vec.as_ptr().addr(),
        CpuStorage::I64(vec) => vec.as_ptr().addr(),
        CpuStorage::BF16(vec) => vec.as_ptr().addr(),
        CpuStorage::F16(vec) => vec.as_ptr().addr(),
        CpuStorage::F32(vec) => vec.as_ptr().addr(),
        CpuStorage::F64(vec) => vec.as_ptr().addr(),
        _ => 0,
    }
}

#[test]
fn the_gathered_memory_becomes_the_tensors() {
    for dtype in DType::ALL {
        let (_kept, view) = store(dtype, &[100], &vec![1; 10 * 100 * dtype.size()]);
        let builder =
            Loader::builder().stream(STREAM, view).sampler(Sequential::new(10, 8).unwrap()).workers(2);
        // The tensor and where its elements were before it was made.
        let with_address = builder.transform(|batch| {
            let Ok(Column::Dense(gathered)) = batch.column(STREAM) else { unreachable!("the view is dense") };
            let before = gathered.data().as_bytes().as_ptr().addr();
            Columns::new().tensors(batch).map(|batch| (before, batch))
        });
        for step in with_address.build().unwrap().take(3) {
            let (before, batch) = step.unwrap();
            let tensor = batch.tensor(STREAM).unwrap();
            assert_eq!(tensor.dims(), [8, 100]);
            let moved = !matches!(dtype, DType::U16 | DType::I8 | DType::U64);
            // What changes its size cannot stay; u64 may.
            assert_eq!(address(tensor) == before, moved || dtype == DType::U64, "{dtype}");
        }
    }
}

#[test]
fn checked_labels_keep_their_memory() {
    let bytes = bytes_of(&[0_u32, 1, 2, 3], u32::to_le_bytes);
    let (_kept, view) = store(DType::U32, &[], &bytes);
    let builder = Loader::builder().stream(STREAM, view).sampler(Sequential::new(4, 4).unwrap());
    let mut loader = builder
        .transform(|batch| {
            let Ok(Column::Dense(gathered)) = batch.column(STREAM) else { unreachable!("the view is dense") };
            let before = gathered.data().as_bytes().as_ptr().addr();
            Columns::new().ids(STREAM).tensors(batch).map(|batch| (before, batch))
        })
        .build()
        .unwrap();
    let (before, batch) = loader.next().unwrap().unwrap();
    assert_eq!(address(batch.tensor(STREAM).unwrap()), before);
}

#[test]
fn what_has_no_tensor_is_an_error_of_the_step() {
    let (_kept, view) = store(DType::U8, &[], &[1, 2, 3]);
    let builder =
        Loader::builder().stream(STREAM, view).sampler(Sequential::new(3, 3).unwrap()).workers(0).transform(
            |batch| {
                let mut other = batch;
                let values = other.take_dense(STREAM)?;
                assert_eq!(values.records(), 3);
                // The column is gone: a rule for it cannot be followed.
                Columns::new().ids("y").tensors(other)
            },
        );
    let error = builder.build().unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert!(error.to_string().contains("\"y\""), "{error}");
}
