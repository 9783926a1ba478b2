//! A long run of the loader: memory and threads have to stay what they were.
//!
//! `cargo run --release -p loaderx-tests --example loader_soak -- [STEPS] [WORKERS]`, by default a million steps
//! with 4 workers.
#![forbid(unsafe_code)]

use loaderx_tests::loading::soak;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a whole number"));
    let steps = number(1_000_000);
    let workers = number(4) as usize;
    let started = std::time::Instant::now();
    let samples = soak(steps, workers, 20);
    println!("{:>10}  {:>18}  {:>7}", "step", "anonymous memory", "threads");
    for sample in &samples {
        println!("{:>10}  {:>14} KiB  {:>7}", sample.step, sample.anonymous_kib, sample.threads);
    }
    println!("{steps} steps with {workers} workers in {:.1} s", started.elapsed().as_secs_f64());
}
