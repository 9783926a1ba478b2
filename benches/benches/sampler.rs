//! Drawing indices, beside filling the same vector with consecutive numbers.

use std::hint::black_box;

use loaderx_benches::Work;
use loaderx_core::sampler::{Cyclic, Iid, Sampler, Sequential, Tail};

/// Draws in one measurement: their indices are what is counted.
const REPEATS: usize = 64;

fn main() {
    for batch in [1, 256, 8192] {
        for len in [60_000, (1 << 24) + 1] {
            let sequential = Sequential::new(len, batch).expect("a sampler");
            let iid = Iid::new(len, batch, 1).expect("a sampler");
            let cyclic = Cyclic::new(len, batch, 1).expect("a sampler").tail(Tail::Wrap);
            draw(len, batch, &[("Sequential", &sequential), ("Iid", &iid), ("Cyclic", &cyclic)]);
        }
    }
}

fn draw(len: u64, batch: usize, samplers: &[(&str, &dyn Sampler)]) {
    let mut filled = Vec::with_capacity(batch);
    let mut work =
        Work::new(format!("draw {batch} of {len}"), (batch * REPEATS) as u64 * 8, (batch * REPEATS) as u64)
            .variant("fill with consecutive numbers", move || {
                // A single draw is too short for the clock.
                for _ in 0..REPEATS {
                    filled.clear();
                    filled.extend(black_box(0)..black_box(batch as u64));
                    black_box(&filled);
                }
            });
    for &(name, sampler) in samplers {
        let mut drawn = Vec::with_capacity(batch);
        let mut step = 0;
        sampler.draw(0, &mut drawn);
        assert!(drawn.len() == batch && drawn.iter().all(|&index| index < len), "{name} drew a wrong batch");
        work = work.variant(name, move || {
            for _ in 0..REPEATS {
                sampler.draw(black_box(step), &mut drawn);
                black_box(&drawn);
                step += 1;
            }
        });
    }
    work.run();
}
