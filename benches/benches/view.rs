//! What views do on the way: conversion, padding and maps inside the gather, each beside the same in two passes, and
//! the memory that batches are made in.

use std::hint::black_box;
use std::path::Path;

use loaderx_benches::{Lcg, Work, random_indices};
use loaderx_core::buffer::{Allocator, Pool, Vecs};
use loaderx_core::view::{Channels, Pad, Request, Source};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Ragged, RaggedWriter};

const STORE_BYTES: usize = 256 << 20;
const BATCH: usize = 256;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    convert(&images(dir.path(), [28, 28, 1], STORE_BYTES));
    convert(&images(dir.path(), [64, 64, 3], STORE_BYTES));
    memory(&images(dir.path(), [224, 224, 3], STORE_BYTES));
    pad(&texts(dir.path()));
    map(&images(dir.path(), [64, 64, 3], STORE_BYTES));
}

fn images(dir: &Path, shape: [usize; 3], bytes: usize) -> Dense {
    let path = dir.join(format!("{shape:?}"));
    if !path.exists() {
        let record: usize = shape.iter().product();
        let writer = DenseWriter::create(&path, DType::U8, &shape, Codec::Raw).expect("a new store");
        let block = Lcg(1).bytes(record * 64);
        for _ in 0..bytes / block.len() {
            writer.append(&block).expect("an append");
        }
        writer.finish().expect("a store");
    }
    Dense::open(path).expect("the store")
}

/// Tokens of texts of 1 to 256 of them.
fn texts(dir: &Path) -> Ragged {
    let mut random = Lcg(2);
    let writer = RaggedWriter::create(dir.join("texts"), DType::U16, &[], Codec::Raw).expect("a new store");
    for _ in 0..100 {
        let lengths: Vec<usize> = (0..4000).map(|_| random.next_u32() as usize % 256 + 1).collect();
        let tokens: Vec<u16> = (0..lengths.iter().sum()).map(|_| random.next_u32() as u16).collect();
        writer.append(tokens, &lengths).expect("an append");
    }
    writer.finish().expect("a store")
}

/// Batches of random records, one after the other.
struct Batches {
    indices: Vec<u64>,
    at: usize,
}

impl Batches {
    /// Each variant has a `seed` of its own, or a variant would find its records in the cache that the one before
    /// it has filled.
    fn new(seed: u64, len: u64) -> Self {
        Self { indices: random_indices(seed, 1 << 16, len), at: 0 }
    }

    fn next(&mut self) -> &[u64] {
        self.at = (self.at + BATCH) % self.indices.len();
        &self.indices[self.at..self.at + BATCH]
    }
}

fn convert(dense: &Dense) {
    let pool = Pool::new();
    let record: usize = dense.item_shape().iter().product();
    let unit = dense.to_f32().scale(1.0 / 255.0).expect("a scale");
    let channels = dense.item_shape()[2];
    let (mean, std) = (vec![0.45; channels], vec![0.25; channels]);
    let last = unit.clone().normalize_channels(Channels::Last, &mean, &std).expect("one number for each");
    let half = dense.convert(DType::BF16).and_then(|dense| dense.scale(1.0 / 255.0)).expect("a scale");
    let scale = (1.0_f64 / 255.0) as f32;
    let mut floats = vec![0.0_f32; BATCH * record];
    let mut two_passes = |indices: &[u64]| {
        let stored =
            dense.gather(&Request::new(indices).memory(&pool)).and_then(|stored| stored.into_dense());
        let stored = stored.expect("a batch");
        for (float, &x) in floats.iter_mut().zip(stored.data().as_bytes()) {
            *float = f32::from(x) * scale;
        }
        black_box(&floats).first().copied()
    };
    let gather = |source: &dyn Source, indices: &[u64]| {
        black_box(source.gather(&Request::new(indices).memory(&pool)).expect("a batch"));
    };

    let check = Batches::new(9, dense.len()).next().to_vec();
    let fused = unit.batch(&check).expect("a batch");
    let stored = dense.batch(&check).expect("a batch");
    let equal = stored.data().as_bytes().iter().map(|&x| f32::from(x) * scale);
    assert!(
        equal.eq(fused.as_slice::<f32>().expect("floats").iter().copied()),
        "fused and two passes differ"
    );

    let mut turns: [Batches; 5] = std::array::from_fn(|i| Batches::new(i as u64, dense.len()));
    let [a, b, c, d, e] = &mut turns;
    Work::new(
        format!("{BATCH} x {:?} u8 to f32 (bytes of f32)", dense.item_shape()),
        (BATCH * record * 4) as u64,
        BATCH as u64,
    )
    .variant("gather, then a loop over the batch", || {
        black_box(two_passes(a.next()));
    })
    .variant("converted in the gather", || gather(&unit, b.next()))
    .variant("ditto, by channel (last)", || gather(&last, c.next()))
    .variant("ditto, to bf16", || gather(&half, d.next()))
    .variant("gather alone, no conversion", || gather(dense, e.next()))
    .run();
}

fn memory(dense: &Dense) {
    let record: usize = dense.item_shape().iter().product();
    let pool = Pool::new();
    let gather = |memory: &dyn Allocator, indices: &[u64]| {
        black_box(dense.gather(&Request::new(indices).memory(memory)).expect("a batch"));
    };
    let (mut a, mut b) = (Batches::new(1, dense.len()), Batches::new(2, dense.len()));
    Work::new(
        format!("{BATCH} x {:?} u8 into new memory", dense.item_shape()),
        (BATCH * record) as u64,
        BATCH as u64,
    )
    .variant("Vecs", || gather(&Vecs, a.next()))
    .variant("Pool", || gather(&pool, b.next()))
    .run();
}

fn pad(texts: &Ragged) {
    let pool = Pool::new();
    let to = Pad::to_longest().multiple_of(8);
    let wide = texts.convert(DType::I64).expect("a wider type");
    let padded = wide.padded(to).expect("a padding");
    let check = Batches::new(9, texts.len()).next().to_vec();
    let (within, after) =
        (padded.batch(&check).expect("a batch"), wide.batch(&check).and_then(|batch| batch.pad(&to)));
    let after = after.expect("a batch");
    assert_eq!(within.values().data().as_bytes(), after.values().data().as_bytes(), "two paddings differ");
    let bytes = within.values().data().as_bytes().len() as u64;
    let (mut a, mut b) = (Batches::new(1, texts.len()), Batches::new(2, texts.len()));
    Work::new(format!("{BATCH} texts of 1 to 256 u16 tokens, padded i64"), bytes, BATCH as u64)
        .variant("gather ragged as i64, then pad", || {
            black_box(wide.batch(a.next()).and_then(|batch| batch.pad(&to)).expect("a batch"));
        })
        .variant("widened and padded in the gather", || {
            black_box(padded.gather(&Request::new(b.next()).memory(&pool)).expect("a batch"));
        })
        .run();
}

fn map(dense: &Dense) {
    let record: usize = dense.item_shape().iter().product();
    let shape = dense.item_shape().to_vec();
    // A brightness of its own for each image, and a flip of half of them.
    let augmented = dense.map(&shape, DType::F32, |rng, stored, row| {
        let gain = rng.uniform(0.8, 1.2) / 255.0;
        let row = row.as_mut_slice::<f32>()?;
        let pixels = stored.bytes().chunks_exact(64 * 3).zip(row.chunks_exact_mut(64 * 3));
        let flip = rng.chance(0.5);
        for (from, to) in pixels {
            for (at, to) in to.chunks_exact_mut(3).enumerate() {
                let from = &from[3 * if flip { 63 - at } else { at }..][..3];
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = f32::from(x) * gain);
            }
        }
        Ok(())
    });
    let augmented = augmented.expect("a map");
    let pool = Pool::new();
    let gather = |threads: usize, indices: &[u64]| {
        let request = Request::new(indices).at(1, indices[0]).threads(threads).memory(&pool);
        augmented.gather(&request).and_then(|column| column.into_dense()).expect("a batch")
    };
    let check = Batches::new(9, dense.len()).next().to_vec();
    assert_eq!(gather(1, &check).data().as_bytes(), gather(2, &check).data().as_bytes(), "threads differ");
    let (mut a, mut b) = (Batches::new(1, dense.len()), Batches::new(2, dense.len()));
    Work::new(
        format!("{BATCH} x {shape:?} u8 brightened and flipped to f32"),
        (BATCH * record * 4) as u64,
        BATCH as u64,
    )
    .variant("record map, 1 thread", || drop(black_box(gather(1, a.next()))))
    .variant("record map, 2 threads", || drop(black_box(gather(2, b.next()))))
    .run();
}
