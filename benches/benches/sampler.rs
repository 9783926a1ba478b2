//! Drawing indices, beside filling the same vector with consecutive numbers.

use std::hint::black_box;

use loaderx_benches::Work;
use loaderx_core::sampler::{Sampler, Sequential};

fn main() {
    for batch in [1, 256, 8192] {
        for len in [60_000, (1 << 24) + 1] {
            let sequential = Sequential::new(len, batch).expect("a sampler");
            draw("sequential", len, batch, &sequential);
        }
    }
}

fn draw(name: &str, len: u64, batch: usize, sampler: &dyn Sampler) {
    let mut filled = Vec::with_capacity(batch);
    let mut drawn = Vec::with_capacity(batch);
    let mut step = 0;
    sampler.draw(0, &mut drawn);
    assert!(drawn.len() == batch && drawn.iter().all(|&index| index < len), "{name} drew a wrong batch");
    Work::new(format!("draw {batch} of {len}"), batch as u64 * 8, batch as u64)
        .variant("fill with consecutive numbers", || {
            filled.clear();
            filled.extend(black_box(0)..black_box(batch as u64));
            black_box(&filled);
        })
        .variant(name, || {
            sampler.draw(black_box(step), &mut drawn);
            black_box(&drawn);
            step += 1;
        })
        .run();
}
