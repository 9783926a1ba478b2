//! Reading a store that is not in memory: the page cache is emptied of its file before every run.
//!
//! 2 GiB of 12 KiB records; needs as much room where temporary files go, a disk there (not memory) and `dd` of the
//! GNU core utilities, which can ask the system to forget a file.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use loaderx_benches::{Lcg, random_indices};
use loaderx_core::sampler::Iid;
use loaderx_core::{Codec, DType, Dense, DenseWriter, Loader};

const RECORD: usize = 12 << 10;
const BATCH: usize = 256;
const STEPS: usize = 64;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("store");
    let writer = DenseWriter::create(&path, DType::U8, &[64, 64, 3], Codec::Raw).expect("a store");
    let block = Lcg(1).bytes(RECORD * 1024);
    for _ in 0..(2 << 30) / block.len() {
        writer.append_bytes(&block).expect("an append");
    }
    let records = writer.finish().expect("a store").len();
    Command::new("sync").status().expect("sync");

    println!("{STEPS} batches of {BATCH} x {RECORD} B out of {records}, cold; five runs each");
    type Run<'a> = Box<dyn Fn(u64) -> f64 + 'a>;
    let runs: [(&str, Run<'_>); 5] = [
        ("positioned reads, one after the other", Box::new(|seed| positioned(&path, seed, records))),
        ("mapping without advice", Box::new(|seed| mapped(&path, seed, records))),
        ("loader without workers", Box::new(|seed| loaded(&path, seed, records, 0))),
        ("loader, 1 worker, asks ahead", Box::new(|seed| loaded(&path, seed, records, 1))),
        ("loader, 2 workers, ask ahead", Box::new(|seed| loaded(&path, seed, records, 2))),
    ];
    let mut rates = vec![Vec::new(); runs.len()];
    for round in 0..5 {
        for ((_, run), rates) in runs.iter().zip(&mut rates) {
            forget(&path);
            rates.push(run(round));
        }
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let reference = median(&mut rates[0]);
    for ((name, _), rates) in runs.iter().zip(&mut rates) {
        let rate = median(rates);
        println!(
            "  {name:<40} {rate:>7.0} MB/s  [{:.0} .. {:.0}]  {:>5.2}x",
            rates[0],
            rates[rates.len() - 1],
            rate / reference
        );
    }

    println!("the same, resident: what the stage costs when it is not needed");
    loaded(&path, 9, records, 0);
    for _ in 0..3 {
        for (name, workers) in [("loader without workers", 0), ("loader, 1 worker", 1)] {
            println!("  {name:<40} {:>7.0} MB/s", loaded(&path, 9, records, workers));
        }
    }
}

/// Empties the page cache of the store's chunks, none of which is mapped now.
fn forget(path: &Path) {
    for entry in path.read_dir().expect("the store") {
        let of = entry.expect("an entry").path();
        let dd = Command::new("dd")
            .arg(format!("of={}", of.display()))
            .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
            .stdin(std::process::Stdio::null())
            .status();
        assert!(dd.expect("dd").success(), "dd could not drop {}", of.display());
    }
}

fn rate(start: Instant) -> f64 {
    (STEPS * BATCH * RECORD) as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn indices(seed: u64, records: u64) -> Vec<u64> {
    random_indices(seed, STEPS * BATCH, records)
}

fn positioned(path: &Path, seed: u64, records: u64) -> f64 {
    let files: Vec<File> =
        (0..).map_while(|chunk| File::open(path.join(format!("{chunk}.zr"))).ok()).collect();
    let in_first = files[0].metadata().expect("a size").len() / RECORD as u64;
    let mut row = vec![0; RECORD];
    let start = Instant::now();
    for index in indices(seed, records) {
        let (chunk, place) = (index / in_first, index % in_first);
        files[chunk as usize].read_exact_at(&mut row, place * RECORD as u64).expect("a read");
        black_box(&row);
    }
    rate(start)
}

fn mapped(path: &Path, seed: u64, records: u64) -> f64 {
    let dense = Dense::open(path).expect("the store");
    let indices = indices(seed, records);
    let start = Instant::now();
    for batch in indices.chunks_exact(BATCH) {
        black_box(dense.batch(batch).expect("a batch"));
    }
    rate(start)
}

fn loaded(path: &Path, seed: u64, records: u64, workers: usize) -> f64 {
    let loader = Loader::builder()
        .stream("image", Dense::open(path).expect("the store"))
        .sampler(Iid::new(records, BATCH, seed).expect("a sampler"))
        .workers(workers)
        .build();
    let mut loader = loader.expect("a loader");
    let start = Instant::now();
    for _ in 0..STEPS {
        black_box(loader.next().expect("endless").expect("a batch"));
    }
    rate(start)
}
