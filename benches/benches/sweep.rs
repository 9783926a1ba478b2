//! Record sizes from 4 to 200 KiB and alignments of source and destination, in search of a slow band: processors copy
//! some combinations of size and alignment several times slower than their neighbours.

use std::hint::black_box;
use std::path::Path;

use loaderx_benches::{Lcg, Work, random_indices, uninit_bytes};
use loaderx_core::{Codec, CreateOptions, Store};

/// Larger than the second cache by far; small enough to write thirty of.
const STORE_BYTES: usize = 192 << 20;
/// Bytes of a batch, about, so that every size costs the same time.
const BATCH_BYTES: usize = 3 << 20;
/// Where the destination begins within a page: as an allocator returns it, and in steps of a line and less.
const STARTS: [usize; 6] = [0, 1, 16, 64, 1024, 4080];

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut rows = Vec::new();
    // One for all sizes, since its own speed depends on where its memory happens to lie.
    let mut reference =
        Reference { source: Lcg(1).bytes(STORE_BYTES), copied: vec![0; 2 * BATCH_BYTES], at: 0 };
    for kib in [4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 200] {
        // A multiple of the page meets the same alignment in every record; one line more or less walks through all.
        for record in [kib * 1024 - 64, kib * 1024, kib * 1024 + 1] {
            rows.push((record, ratios(dir.path(), record, &mut reference)));
        }
    }
    println!(
        "of a sequential copy, by size: median and least over {} alignments of the destination",
        STARTS.len()
    );
    let median = |ratios: &[f64]| {
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    for (i, (record, ratios)) in rows.iter().enumerate() {
        // The sizes just before and after, at any alignment.
        let near: Vec<f64> = rows[i.saturating_sub(3)..rows.len().min(i + 4)]
            .iter()
            .filter(|(other, _)| other != record)
            .map(|(_, ratios)| median(ratios))
            .collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "  {record:>8} B  median {:>5.2}  least {least:>5.2}  least of the neighbours' median {:>5.2}",
            median(ratios),
            least / median(&near)
        );
    }
}

/// Sequential copies, each from where the last one ended.
struct Reference {
    source: Vec<u8>,
    copied: Vec<u8>,
    at: usize,
}

impl Reference {
    fn copy(&mut self, bytes: usize) {
        if self.at + bytes > self.source.len() {
            self.at = 0;
        }
        self.copied[..bytes].copy_from_slice(&self.source[self.at..][..bytes]);
        black_box(&self.copied);
        self.at += bytes;
    }
}

/// The speed for each start of the destination, as ratios to a sequential copy.
fn ratios(dir: &Path, record: usize, reference: &mut Reference) -> Vec<f64> {
    let path = dir.join(record.to_string());
    let count = STORE_BYTES / record;
    let store = Store::create(&path, CreateOptions::new().codec(Codec::Raw)).expect("a new store");
    let block = Lcg(record as u64).bytes(record * 16);
    for _ in 0..count / 16 {
        store.append_fixed(&block, record).expect("an append");
    }
    let batch = (BATCH_BYTES / record).max(1);
    let everything = random_indices(7, 1 << 16, store.len());
    let batches: Vec<&[u64]> = everything.chunks_exact(batch).collect();
    let in_order: Vec<u64> = (0..store.len()).collect();
    let page = 4096;
    let mut room = uninit_bytes(batch * record + 2 * page);
    let first = page - room.as_ptr().addr() % page;
    for indices in in_order.chunks_exact(batch) {
        store.gather_fixed(indices, record, &mut room[..batch * record]).expect("a gather");
    }
    // One destination that every variant borrows in turn.
    let room = std::cell::RefCell::new(room);
    let mut work = Work::new(format!("gather {batch} x {record} B"), (batch * record) as u64, batch as u64)
        .variant("sequential copy of the same bytes", || reference.copy(batch * record));
    for (variant, start) in STARTS.into_iter().enumerate() {
        let (room, store, batches) = (&room, &store, &batches);
        // Far from what the others of the round gather, which the cache still holds.
        let mut step = variant * batches.len() / STARTS.len();
        work = work.variant(format!("into memory that begins at {start} of a page"), move || {
            let mut room = room.borrow_mut();
            let place = &mut room[first + start..][..batch * record];
            black_box(store.gather_fixed(batches[step % batches.len()], record, place).expect("a gather"));
            step += 1;
        });
    }
    let measured = work.run();
    drop(store);
    std::fs::remove_dir_all(path).expect("the store can be removed");
    measured[1..].iter().map(|row| row.ratio).collect()
}
