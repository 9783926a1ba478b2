//! Converted batches equal what a plain loop over the stored elements computes, bit for bit.
#![forbid(unsafe_code)]

use half::{bf16, f16};
use loaderx_core::buffer::{Pool, bytes_of};
use loaderx_core::view::{Channels, Converted, Request, Source};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Element, ErrorKind};
use loaderx_tests::ragged::store;
use proptest::prelude::*;
use tempfile::TempDir;

fn dense<T: Element>(dtype: DType, shape: &[usize], elements: &[T]) -> (TempDir, Dense) {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("d"), dtype, shape, Codec::Raw).unwrap();
    writer.append(elements).unwrap();
    (dir, writer.finish().unwrap())
}

/// The bytes of record 0 converted to `to`.
fn converted<T: Element>(dtype: DType, elements: &[T], to: DType) -> Vec<u8> {
    let (_dir, dense) = dense(dtype, &[elements.len()], elements);
    let batch = dense.convert(to).unwrap().batch(&[0]).unwrap();
    assert_eq!(batch.dtype(), to);
    batch.data().as_bytes().to_vec()
}

/// Checks a source type against every float type. Elements are brought to `f32` first where the target is no wider.
fn check_floats<T: Element>(
    dtype: DType,
    elements: &[T],
    single: impl Fn(T) -> f32,
    double: impl Fn(T) -> f64,
) {
    let floats: Vec<f32> = elements.iter().map(|&x| single(x)).collect();
    let doubles: Vec<f64> = elements.iter().map(|&x| double(x)).collect();
    let halves: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
    let brains: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
    for (to, expected) in [
        (DType::F32, bytes_of(&floats)),
        (DType::F64, bytes_of(&doubles)),
        (DType::F16, bytes_of(&halves)),
        (DType::BF16, bytes_of(&brains)),
    ] {
        if to != dtype {
            assert_eq!(converted(dtype, elements, to), expected, "{dtype} to {to}");
        }
    }
}

#[test]
fn every_type_becomes_every_float_type() {
    // More than one block of the kernels, and an odd number.
    let all: Vec<u16> = (0..=u16::MAX).chain(0..7).collect();
    let take = |count: usize| all[..count].to_vec();
    let bytes: Vec<u8> = take(777).iter().map(|&x| (x % 256) as u8).collect();
    let truth: Vec<u8> = bytes.iter().map(|x| x % 2).collect();
    check_floats(DType::Bool, &truth, f32::from, f64::from);
    check_floats(DType::U8, &bytes, f32::from, f64::from);
    check_floats(DType::U16, &all, f32::from, f64::from);
    check_floats(DType::U32, &[0, 1, (1 << 24) + 1, u32::MAX], |x| x as f32, f64::from);
    check_floats(DType::U64, &[0, 1, (1 << 53) + 1, u64::MAX], |x| x as f32, |x| x as f64);
    check_floats(DType::I8, &[i8::MIN, -1, 0, i8::MAX], f32::from, f64::from);
    check_floats(DType::I16, &[i16::MIN, -1, 0, i16::MAX], f32::from, f64::from);
    check_floats(DType::I32, &[i32::MIN, -1, 0, (1 << 24) + 1], |x| x as f32, f64::from);
    check_floats(DType::I64, &[i64::MIN, -1, 0, i64::MAX], |x| x as f32, |x| x as f64);
    // Every bit pattern that is a number.
    let halves: Vec<f16> = all.iter().map(|&x| f16::from_bits(x)).filter(|x| !x.is_nan()).collect();
    check_floats(DType::F16, &halves, f32::from, f64::from);
    let brains: Vec<bf16> = all.iter().map(|&x| bf16::from_bits(x)).filter(|x| !x.is_nan()).collect();
    check_floats(DType::BF16, &brains, f32::from, f64::from);
    let floats = [0.0, -0.0, 1.0 + f32::EPSILON, 65_519.0, 65_520.0, 1e-8, f32::MAX, f32::NEG_INFINITY];
    check_floats(DType::F32, &floats, |x| x, f64::from);
    check_floats(DType::F64, &[0.0, -0.0, 0.1, 1e300, f64::MIN_POSITIVE], |x| x as f32, |x| x);
}

#[test]
fn not_a_number_stays_not_a_number() {
    for to in [DType::F16, DType::BF16, DType::F64] {
        let bytes = converted(DType::F32, &[f32::NAN; 3], to);
        let all_nan = match to {
            DType::F16 => bytes.chunks(2).all(|x| f16::from_le_bytes([x[0], x[1]]).is_nan()),
            DType::BF16 => bytes.chunks(2).all(|x| bf16::from_le_bytes([x[0], x[1]]).is_nan()),
            _ => bytes.chunks(8).all(|x| f64::from_le_bytes(x.try_into().unwrap()).is_nan()),
        };
        assert!(all_nan, "{to}");
    }
}

#[test]
fn integers_widen_to_every_type_that_holds_them_and_to_no_other() {
    let wider = |from: DType| -> &[DType] {
        match from {
            DType::Bool => {
                &[DType::U8, DType::U16, DType::U32, DType::U64, DType::I16, DType::I32, DType::I64]
            }
            DType::U8 => &[DType::U16, DType::U32, DType::U64, DType::I16, DType::I32, DType::I64],
            DType::U16 => &[DType::U32, DType::U64, DType::I32, DType::I64],
            DType::U32 => &[DType::U64, DType::I64],
            DType::I8 => &[DType::I16, DType::I32, DType::I64],
            DType::I16 => &[DType::I32, DType::I64],
            DType::I32 => &[DType::I64],
            _ => &[],
        }
    };
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    for from in DType::ALL {
        let dir = tempfile::tempdir().unwrap();
        let writer = DenseWriter::create(dir.path().join("d"), from, &[3], Codec::Raw).unwrap();
        // The least, the largest and a middle value of every integer type, as bytes.
        let size = from.size();
        let mut stored = vec![0_u8; 3 * size];
        if from == DType::Bool {
            stored = vec![0, 1, 1];
        } else {
            stored[size - 1] = 0x80;
            stored[size..2 * size].fill(0xff);
            stored[2 * size - 1] = 0x7f;
            stored[2 * size] = 0xf1;
        }
        writer.append_bytes(&stored).unwrap();
        let dense = writer.finish().unwrap();
        let value = |bytes: &[u8], signed: bool| {
            let fill = if signed && bytes[bytes.len() - 1] >= 0x80 { 0xff } else { 0 };
            let mut wide = [fill; 16];
            wide[..bytes.len()].copy_from_slice(bytes);
            i128::from_le_bytes(wide)
        };
        let signed = |dtype| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        for to in DType::ALL {
            let source = dense.convert(to);
            if from == to || floats.contains(&to) || wider(from).contains(&to) {
                let batch = source.unwrap().batch(&[0]).unwrap();
                if wider(from).contains(&to) {
                    let got: Vec<i128> =
                        batch.data().as_bytes().chunks(to.size()).map(|x| value(x, signed(to))).collect();
                    let expected: Vec<i128> = stored.chunks(size).map(|x| value(x, signed(from))).collect();
                    assert_eq!(got, expected, "{from} to {to}");
                }
            } else {
                let error = source.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains(&format!("{from} is not converted to {to}")), "{error}");
            }
        }
    }
}

#[test]
fn scale_and_normalisation_follow_each_other() {
    let (_dir, dense) = dense(DType::U8, &[2], &[0_u8, 255]);
    let unit = dense.to_f32().scale(1.0 / 255.0).unwrap();
    assert_eq!(unit.batch(&[0]).unwrap().as_slice::<f32>().unwrap(), [0.0, 1.0]);
    let batch = unit.clone().normalize(0.5, 0.5).unwrap().batch(&[0]).unwrap();
    assert_eq!(batch.as_slice::<f32>().unwrap(), [-1.0, 1.0]);
    let batch = dense.to_f32().normalize(255.0, 51.0).unwrap().scale(2.0).unwrap().batch(&[0]).unwrap();
    assert_eq!(batch.as_slice::<f32>().unwrap(), [-10.0, 0.0]);
    assert_ne!(unit.describe(), dense.to_f32().describe());
    assert_ne!(unit.describe(), dense.describe());
}

#[test]
fn settings_that_cannot_be_right_are_refused() {
    let (_dir, dense) = dense(DType::U8, &[2, 3], &[0_u8; 6]);
    let f32s = || dense.to_f32();
    let refused = |converted: loaderx_core::Result<Converted>| {
        assert_eq!(converted.unwrap_err().kind(), ErrorKind::InvalidArgument);
    };
    refused(dense.convert(DType::I64).unwrap().scale(2.0));
    refused(dense.convert(DType::I64).unwrap().normalize(0.0, 1.0));
    refused(f32s().scale(f64::NAN));
    refused(f32s().normalize(0.0, 0.0));
    refused(f32s().normalize(0.0, -1.0));
    refused(f32s().normalize(f64::INFINITY, 1.0));
    refused(f32s().normalize_channels(Channels::Last, &[0.0; 2], &[1.0; 2]));
    refused(f32s().normalize_channels(Channels::First, &[0.0; 2], &[1.0; 3]));
    refused(f32s().normalize_channels(Channels::Axis(2), &[0.0; 2], &[1.0; 2]));
    refused(f32s().normalize_channels(Channels::First, &[0.0; 2], &[1.0; 2]).unwrap().normalize_channels(
        Channels::Last,
        &[0.0; 3],
        &[1.0; 3],
    ));
}

/// `x * a + b` for each element, with the pair of its channel, as one loop over indices.
fn oracle(elements: &[f32], shape: &[usize], axis: usize, mean: &[f64], std: &[f64], scale: f64) -> Vec<f32> {
    let run: usize = shape[axis + 1..].iter().product();
    let per_record: usize = shape.iter().product();
    let pair = |at: usize| {
        let c = at % per_record / run % shape[axis];
        // Scaled, then normalised: (x * scale) / std - mean / std.
        ((scale * (1.0 / std[c])) as f32, (0.0 * (1.0 / std[c]) + -mean[c] / std[c]) as f32)
    };
    elements.iter().enumerate().map(|(at, &x)| x * pair(at).0 + pair(at).1).collect()
}

fn shapes() -> impl Strategy<Value = (Vec<usize>, usize)> {
    prop_oneof![
        // Few and many channels, on each side; runs shorter and longer than the kernels' thresholds.
        (1..5_usize, 1..30_usize, 1..30_usize).prop_map(|(c, h, w)| (vec![c, h, w], 0)),
        (1..5_usize, 1..30_usize, 1..30_usize).prop_map(|(c, h, w)| (vec![h, w, c], 2)),
        (200..600_usize, 1..4_usize).prop_map(|(c, h)| (vec![h, c], 1)),
        (1..9_usize, 1..9_usize, 1..20_usize).prop_map(|(a, c, b)| (vec![a, c, b], 1)),
        (1..700_usize).prop_map(|c| (vec![c], 0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn normalising_by_channel_equals_the_plain_loop(
        (shape, axis) in shapes(),
        seed in any::<u64>(),
        threads in 1..4_usize,
    ) {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let item: usize = shape.iter().product();
        let stored: Vec<u8> = (0..2 * item).map(|_| next() as u8).collect();
        let floats: Vec<f32> = stored.iter().map(|&x| f32::from(x)).collect();
        let channels = shape[axis];
        let mean: Vec<f64> = (0..channels).map(|_| f64::from(next() % 1000) / 1000.0).collect();
        let std: Vec<f64> = (0..channels).map(|_| f64::from(next() % 1000 + 1) / 1000.0).collect();
        let expected = oracle(&floats, &shape, axis, &mean, &std, 1.0 / 255.0);
        let pool = Pool::new();
        let request = Request::new(&[0, 1]).threads(threads).memory(&pool);
        let check = |source: Converted, expected: &[u8]| {
            let source = source.scale(1.0 / 255.0).unwrap();
            let source = source.normalize_channels(Channels::Axis(axis), &mean, &std).unwrap();
            let batch = source.gather(&request).unwrap().into_dense().unwrap();
            assert_eq!(batch.shape()[1..], shape);
            assert_eq!(batch.data().as_bytes(), expected);
            assert_eq!(source.batch_bytes(&[0, 1]).unwrap() as usize, expected.len());
        };
        // The loop of its own for bytes, and the common one.
        let (_dir, bytes) = dense(DType::U8, &shape, &stored);
        check(bytes.to_f32(), bytes_of(&expected));
        let (_dir, floats) = dense(DType::F32, &shape, &floats);
        check(floats.to_f32(), bytes_of(&expected));
        let halves: Vec<f16> = expected.iter().map(|&x| f16::from_f32(x)).collect();
        check(floats.convert(DType::F16).unwrap(), bytes_of(&halves));
    }

    #[test]
    fn ragged_records_are_converted_like_dense_ones(
        records in prop::collection::vec(prop::collection::vec(any::<u16>(), 0..600), 1..5),
        zstd in any::<bool>(),
    ) {
        let (_dir, ragged) = store(&records, if zstd { Codec::zstd() } else { Codec::Raw });
        let indices: Vec<u64> = (0..records.len() as u64).collect();
        let flat = records.concat();
        let batch = |to| ragged.convert(to).unwrap().batch(&indices).unwrap();
        let expected: Vec<i64> = flat.iter().map(|&x| i64::from(x)).collect();
        prop_assert_eq!(batch(DType::I64).into_vec::<i64>().unwrap().0, expected);
        let expected: Vec<bf16> = flat.iter().map(|&x| bf16::from_f32(f32::from(x))).collect();
        prop_assert_eq!(batch(DType::BF16).into_vec::<bf16>().unwrap().0, expected);
        prop_assert!(ragged.convert(DType::I16).is_err());
    }
}
