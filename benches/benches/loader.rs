//! The loader end to end, beside a plain loop that draws and gathers the same batches.
//!
//! What a loader adds to the plain loop with one worker is the hand-over; with more it may also win time.

use std::hint::black_box;

use loaderx_benches::{Lcg, Work};
use loaderx_core::buffer::Pool;
use loaderx_core::sampler::{Cyclic, Sampler};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Loader};

const STEPS: u64 = 64;

fn main() {
    for (side, records) in [(1, 60_000), (28, 60_000), (110, 6_000)] {
        loading(records, side, 256);
    }
}

fn loading(records: u64, side: usize, batch: usize) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut random = Lcg(1);
    let write = |name: &str, shape: &[usize], bytes: &[u8]| -> Dense {
        let writer =
            DenseWriter::create(dir.path().join(name), DType::U8, shape, Codec::Raw).expect("a store");
        writer.append_bytes(bytes).expect("room");
        writer.finish().expect("a store")
    };
    let record = side * side;
    let images = write("images", &[side, side], &random.bytes(record * records as usize));
    let labels = write("labels", &[], &random.bytes(records as usize));
    let sampler = Cyclic::new(records, batch, 7).expect("a sampler");

    let mut indices = Vec::new();
    let mut step = 0;
    let mut plain = || {
        for _ in 0..STEPS {
            sampler.draw(step, &mut indices);
            black_box(images.batch(&indices).expect("a batch"));
            black_box(labels.batch(&indices).expect("a batch"));
            step += 1;
        }
    };
    let build = |workers: usize| {
        Loader::builder()
            .stream("image", images.clone())
            .stream("label", labels.clone())
            .sampler(sampler.clone())
            .workers(workers)
            .prefetch(8)
    };
    let check = |loader: &mut Loader| {
        let mut indices = Vec::new();
        let batch = loader.next().expect("endless").expect("a batch");
        sampler.draw(batch.step(), &mut indices);
        assert_eq!(batch.indices(), indices);
    };
    let through = |workers: usize, pool: Option<Pool>| {
        // Built for each run, so that idle workers of one variant take no time from another.
        move || {
            let builder = build(workers);
            let builder = if let Some(pool) = &pool { builder.memory(pool.clone()) } else { builder };
            let mut loader = builder.build().expect("a loader");
            check(&mut loader);
            for _ in 1..STEPS {
                black_box(loader.next().expect("endless").expect("a batch"));
            }
        }
    };
    let bytes = STEPS * (batch * (record + 1)) as u64;
    let measured =
        Work::new(format!("{STEPS} batches of {batch} x {record} B + label"), bytes, STEPS * batch as u64)
            .variant("draw and gather in a plain loop", &mut plain)
            .variant("loader without workers", through(0, None))
            .variant("loader, 1 worker", through(1, None))
            .variant("loader, 1 worker, pooled memory", through(1, Some(Pool::new())))
            .variant("loader, 2 workers", through(2, None))
            .variant("loader, 2 workers, pooled memory", through(2, Some(Pool::new())))
            .run();
    let reference = measured[0].median.as_secs_f64();
    for row in &measured[1..] {
        let overhead = (row.median.as_secs_f64() - reference) / STEPS as f64 * 1e6;
        println!("  {:<34} {overhead:>+8.1} us a batch over the plain loop", row.name);
    }

    let one = (batch * (record + 1)) as u64;
    Work::new(format!("the first batch of {batch} x {record} B + label"), one, batch as u64)
        .variant("no workers", || check(&mut build(0).build().expect("a loader")))
        .variant("2 workers, build and drop included", || check(&mut build(2).build().expect("a loader")))
        .run();
    let loader = build(2).build().expect("a loader");
    Work::new("1000 saved states", 0, 1000)
        .variant("state()", || (0..1000).for_each(|_| drop(black_box(loader.state()))))
        .run();
}
