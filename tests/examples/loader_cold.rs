//! Loading from a store that is not in memory, with and without asking ahead.
//!
//! `cargo run --release -p loaderx-tests --example loader_cold -- [MIB] [STEPS] [FOLDER]`, by default 1024 MiB of
//! 12 KiB records and 60 steps of 256. Python drops the file from the page cache, which no safe call of Rust does.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use loaderx_core::sampler::Cyclic;
use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Loader, Result};

const RECORD: usize = 12 * 1024;
const DROP: &str = "import glob, os, sys
for path in glob.glob(sys.argv[1] + '/*.zr'):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
";

/// A view that cannot be asked ahead.
struct Deaf(Dense);

impl Source for Deaf {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.0.gather(request)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        self.0.batch_bytes(indices)
    }

    fn describe(&self) -> String {
        Source::describe(&self.0)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a whole number"));
    let (mib, steps) = (number(1024), number(60));
    let folder = arguments.next().unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(folder).expect("a folder");
    let path = dir.path().join("x");
    let writer = DenseWriter::create(&path, DType::U8, &[RECORD], Codec::Raw).expect("a store");
    for block in 0..mib * 1024 * 1024 / (RECORD as u64 * 256) {
        writer.append_bytes(&vec![block as u8; RECORD * 256]).expect("room");
    }
    writer.finish().expect("a durable store");
    for round in 0..3 {
        for workers in [1, 2] {
            for asking in [false, true] {
                let seconds = run(&path, workers, steps, asking, round);
                let rate = (steps * 256 * RECORD as u64) as f64 / 1e6 / seconds;
                let how = if asking { "asking ahead" } else { "not asking ahead" };
                println!(
                    "{workers} workers, {how:<17} {rate:>8.0} MB/s  {:>7.1} ms a batch",
                    seconds * 1e3 / steps as f64
                );
            }
        }
    }
}

fn run(path: &Path, workers: usize, steps: u64, asking: bool, seed: u64) -> f64 {
    let dropped = Command::new("python3").args(["-c", DROP]).arg(path).status().expect("python3");
    assert!(dropped.success());
    let dense = Dense::open(path).expect("a store");
    let sampler = Cyclic::new(dense.len(), 256, seed).expect("a sampler");
    let builder = Loader::builder().sampler(sampler).workers(workers).prefetch(4);
    let builder = if asking { builder.stream("x", dense) } else { builder.stream("x", Deaf(dense)) };
    let mut loader = builder.build().expect("a loader");
    let start = Instant::now();
    for _ in 0..steps {
        let batch = loader.next().expect("endless").expect("a batch");
        assert_eq!(batch.bytes(), 256 * RECORD as u64);
    }
    start.elapsed().as_secs_f64()
}
