//! Ragged streams: padded with masks, one after the other with their offsets, several to a row.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use candle_core::{DType as CandleDType, Tensor};
use loaderx_candle::{Columns, TensorBatch, TensorLoader};
use loaderx_core::format::FormatVersion;
use loaderx_core::sampler::Sequential;
use loaderx_core::view::{
    Column, DenseBatch, Pack, PackedBatch, Pad, PaddedBatch, Piece, Request, Side, Source,
};
use loaderx_core::{CreateOptions, DType, Loader, Ragged, RaggedWriter};
use proptest::prelude::*;

fn store(texts: &[Vec<u16>]) -> (tempfile::TempDir, Ragged) {
    let directory = tempfile::tempdir().unwrap();
    let options = CreateOptions::new().format(FormatVersion::V4);
    let writer = RaggedWriter::create_with(directory.path().join("store"), DType::U16, &[], options).unwrap();
    writer.append_records(texts.iter().map(Vec::as_slice)).unwrap();
    let view = writer.finish().unwrap();
    (directory, view)
}

/// Every record of a source in one batch.
fn delivered(source: impl Source + 'static) -> TensorBatch {
    let records = source.len();
    let sampler = Sequential::new(records, usize::try_from(records).unwrap()).unwrap();
    let builder = Loader::builder().stream("tokens", source).sampler(sampler).workers(0);
    TensorLoader::new(builder, Columns::new().ids("tokens")).unwrap().next().unwrap().unwrap()
}

/// Records padded by hand: the form that the adapter takes, made without the view that usually makes it.
struct Fixed {
    texts: Vec<Vec<u16>>,
    width: usize,
    side: Side,
}

impl Source for Fixed {
    fn len(&self) -> u64 {
        self.texts.len() as u64
    }

    fn gather(&self, request: &Request<'_>) -> loaderx_core::Result<Column> {
        let mut values = Vec::new();
        let mut lengths = Vec::new();
        for &index in request.indices {
            let text = &self.texts[usize::try_from(index).unwrap()];
            let padding = vec![7; self.width - text.len()];
            values.extend(match self.side {
                Side::Left => [padding.as_slice(), text].concat(),
                Side::Right => [text, padding.as_slice()].concat(),
            });
            lengths.push(i64::try_from(text.len()).unwrap());
        }
        let values = DenseBatch::from_parts(values.into(), vec![request.indices.len(), self.width])?;
        Ok(Column::Padded(PaddedBatch::from_parts(values, lengths, self.side)?))
    }

    fn batch_bytes(&self, indices: &[u64]) -> loaderx_core::Result<u64> {
        Ok(2 * (indices.len() * self.width) as u64)
    }

    fn describe(&self) -> String {
        "fixed".to_owned()
    }
}

fn numbers(tensor: &Tensor) -> Vec<u32> {
    assert_eq!(tensor.dtype(), CandleDType::U32);
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn padded_streams_have_both_masks_and_lengths() {
    for side in [Side::Left, Side::Right] {
        let source = Fixed { texts: vec![vec![1, 2, 3], vec![4], vec![]], width: 4, side };
        let batch = delivered(source);
        let padded = batch.padded("tokens").unwrap();
        assert_eq!((padded.width, padded.rows(), padded.side), (4, 4, side));
        let (values, mask) = match side {
            Side::Right => ([1, 2, 3, 7, 4, 7, 7, 7, 7, 7, 7, 7], [[1, 1, 1, 0], [1, 0, 0, 0], [0; 4]]),
            Side::Left => ([7, 1, 2, 3, 7, 7, 7, 4, 7, 7, 7, 7], [[0, 1, 1, 1], [0, 0, 0, 1], [0; 4]]),
        };
        assert_eq!(padded.values.dims(), [3, 4]);
        assert_eq!(numbers(&padded.values), values);
        assert_eq!(numbers(&padded.lengths), [3, 1, 0]);
        assert_eq!(padded.mask.to_vec2::<u8>().unwrap(), mask);
        let additive: Vec<Vec<f32>> = padded.additive_mask().unwrap().to_vec2().unwrap();
        let expected = mask.map(|row| row.map(|data| if data == 1 { 0.0 } else { -f32::MAX }));
        assert_eq!(additive, expected);
    }
}

#[test]
fn a_padded_view_of_a_store_gives_what_padding_by_hand_gives() {
    let texts = vec![vec![1, 2, 3], vec![4], vec![], vec![5, 6, 7, 8]];
    let (_kept, view) = store(&texts);
    for (side, pad) in [(Side::Right, Pad::to_longest()), (Side::Left, Pad::to_longest().left())] {
        let by_hand = delivered(Fixed { texts: texts.clone(), width: 4, side });
        let by_hand = by_hand.padded("tokens").unwrap();
        for source in [view.clone(), view.convert(DType::U32).unwrap()] {
            let batch = delivered(source.padded(pad.value(7_u8)).unwrap());
            let padded = batch.padded("tokens").unwrap();
            assert_eq!(numbers(&padded.values), numbers(&by_hand.values));
            assert_eq!(numbers(&padded.lengths), numbers(&by_hand.lengths));
            let mask = |of: &loaderx_candle::Padded| of.mask.to_vec2::<u8>().unwrap();
            assert_eq!(mask(padded), mask(by_hand));
            assert_eq!((padded.width, padded.rows(), padded.side), (4, 8, side));
        }
    }
}

#[test]
fn a_packing_view_of_a_store_fills_rows() {
    let texts = vec![vec![1, 2, 3], vec![4, 5], vec![6]];
    let (_kept, view) = store(&texts);
    let batch = delivered(view.packed(Pack::into_rows_of(4)).unwrap());
    let rows = batch.packed_rows("tokens").unwrap();
    assert_eq!((rows.values.dims(), rows.used), ([2, 4].as_slice(), 6));
    let starts = numbers(&rows.positions)
        .iter()
        .zip(numbers(&rows.segments))
        .filter(|&(&at, part)| at == 0 && part > 0)
        .count();
    assert_eq!(starts, texts.len(), "each record is one sequence");
    let mut data: Vec<u32> = numbers(&rows.values).into_iter().filter(|&value| value > 0).collect();
    data.sort_unstable();
    assert_eq!(data, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_additive_mask_hides_padding_from_a_softmax_and_gives_no_nan() {
    let source = Fixed { texts: vec![vec![1, 2], vec![]], width: 3, side: Side::Right };
    let batch = delivered(source);
    let mask = batch.padded("tokens").unwrap().additive_mask().unwrap();
    let scores = Tensor::new(&[[1.0_f32, 1.0, 50.0], [-3.0, 0.0, 3.0]], mask.device()).unwrap();
    let masked = (scores + mask).unwrap();
    let exponents = masked.broadcast_sub(&masked.max_keepdim(1).unwrap()).unwrap().exp().unwrap();
    let weights = exponents.broadcast_div(&exponents.sum_keepdim(1).unwrap()).unwrap();
    let weights: Vec<Vec<f32>> = weights.to_vec2().unwrap();
    assert_eq!(weights[0], [0.5, 0.5, 0.0]);
    assert!(weights[1].iter().all(|weight| weight.is_finite()), "{weights:?}");
}

#[test]
fn rows_packed_with_several_records_attend_within_a_record() {
    struct Rows;
    impl Source for Rows {
        fn len(&self) -> u64 {
            3
        }

        fn gather(&self, _: &Request<'_>) -> loaderx_core::Result<Column> {
            let values = DenseBatch::from_parts(vec![1_u16, 2, 3, 0, 4, 5, 0, 0].into(), vec![2, 4])?;
            let piece = |record, row, start, length| Piece { record, first: 0, row, start, length };
            let pieces = vec![piece(0, 0, 0, 2), piece(1, 0, 2, 1), piece(2, 1, 0, 2)];
            Ok(Column::Packed(PackedBatch::from_parts(values, pieces, 3)?))
        }

        fn batch_bytes(&self, _: &[u64]) -> loaderx_core::Result<u64> {
            Ok(16)
        }

        fn describe(&self) -> String {
            "rows".to_owned()
        }
    }

    let batch = delivered(Rows);
    assert_eq!(batch.records(), 3);
    let rows = batch.packed_rows("tokens").unwrap();
    assert_eq!((rows.values.dims(), rows.used), ([2, 4].as_slice(), 5));
    assert_eq!(numbers(&rows.values), [1, 2, 3, 0, 4, 5, 0, 0]);
    assert_eq!(numbers(&rows.segments), [1, 1, 2, 0, 1, 1, 0, 0]);
    assert_eq!(numbers(&rows.positions), [0, 1, 0, 0, 0, 1, 0, 0]);
    let mask: Vec<Vec<Vec<u8>>> = rows.attention_mask().unwrap().to_vec3().unwrap();
    assert_eq!(mask[0], [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]);
    assert_eq!(mask[1], [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]);
}

#[test]
fn records_of_rows_keep_the_shape_of_a_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let options = CreateOptions::new().format(FormatVersion::V4);
    let writer = RaggedWriter::create_with(path, DType::F32, &[2], options).unwrap();
    writer.append((0..10_u8).map(f32::from).collect::<Vec<_>>(), &[1, 0, 4]).unwrap();
    let builder =
        Loader::builder().stream("boxes", writer.finish().unwrap()).sampler(Sequential::new(3, 3).unwrap());
    let batch = TensorLoader::new(builder, Columns::new()).unwrap().next().unwrap().unwrap();
    let packed = batch.packed("boxes").unwrap();
    let rows: Vec<Vec<f32>> = packed.values.to_vec2().unwrap();
    assert_eq!(rows, [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]);
    assert_eq!(numbers(&packed.cu_seqlens), [0, 1, 1, 5]);
    assert_eq!(packed.max_length, 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn packed_streams_are_the_records_one_after_the_other(
        texts in prop::collection::vec(prop::collection::vec(any::<u16>(), 0..9), 1..12),
    ) {
        let (_kept, view) = store(&texts);
        let batch = delivered(view);
        let packed = batch.packed("tokens").unwrap();

        let values: Vec<u32> = texts.iter().flatten().copied().map(u32::from).collect();
        let lengths: Vec<u32> = texts.iter().map(|text| u32::try_from(text.len()).unwrap()).collect();
        let positions: Vec<u32> = lengths.iter().flat_map(|&length| 0..length).collect();
        let mut ends = vec![0];
        for &length in &lengths {
            ends.push(ends[ends.len() - 1] + length);
        }
        prop_assert_eq!(numbers(&packed.values), values);
        prop_assert_eq!(numbers(&packed.lengths), lengths);
        prop_assert_eq!(numbers(&packed.positions), positions);
        prop_assert_eq!(numbers(&packed.cu_seqlens), ends);
        prop_assert_eq!(packed.max_length, texts.iter().map(Vec::len).max().unwrap());
        prop_assert_eq!(packed.positions.dims(), packed.values.dims());
    }
}
