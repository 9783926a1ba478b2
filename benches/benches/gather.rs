//! Gathering random records, beside copying the same number of bytes in one sequential piece: with one thread into
//! memory that is used again, and with two into a pool's.

use std::hint::black_box;
use std::path::Path;

use loaderx_benches::{Lcg, Work, checksum, random_indices, uninit_bytes};
use loaderx_core::buffer::Pool;
use loaderx_core::view::{Request, Source};
use loaderx_core::{Codec, CreateOptions, DType, Dense, DenseWriter, Store};

/// Larger than the last cache, so that a random record comes from memory.
const STORE_BYTES: usize = 256 << 20;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for record in [64, 784, 2048, 4096, 12 * 1024, 150_528, 1 << 20] {
        gather(dir.path(), record, Codec::Raw, STORE_BYTES, 256.min((64 << 20) / record));
    }
    for batch in [1, 16, 1024, 8192] {
        gather(dir.path(), 784, Codec::Raw, STORE_BYTES, batch);
    }
    for record in [784, 2048, 12 * 1024] {
        gather(dir.path(), record, Codec::zstd(), 32 << 20, 256);
    }
    for (record, batch) in
        [(784, 256), (784, 8192), (2048, 256), (2048, 4096), (12 * 1024, 256), (150_528, 256)]
    {
        with_threads(dir.path(), record, batch);
    }
}

/// One and two threads within a batch; a thread is started only when the batch is worth it.
fn with_threads(dir: &Path, record: usize, batch: usize) {
    let path = dir.join(format!("{record}-dense"));
    let view = if path.exists() {
        Dense::open(&path).expect("a store")
    } else {
        let writer = DenseWriter::create(&path, DType::U8, &[record], Codec::Raw).expect("a new store");
        let block = Lcg(record as u64).bytes(record * 64);
        for _ in 0..STORE_BYTES / block.len() {
            writer.append_bytes(&block).expect("an append");
        }
        writer.finish().expect("a store")
    };
    let everything = random_indices(7, (1 << 16).max(batch), view.len());
    let batches: Vec<&[u64]> = everything.chunks_exact(batch).collect();
    let in_order: Vec<u64> = (0..view.len()).collect();
    for indices in in_order.chunks(batch) {
        view.batch(indices).expect("a batch");
    }
    let pool = Pool::new();
    let gather = |threads: usize| {
        let (view, pool, batches) = (&view, &pool, &batches);
        // Other batches than the other variant's of the same round, which the cache still holds.
        let mut step = batches.len() / 2 * threads;
        move || {
            let request = Request::new(batches[step % batches.len()]).memory(pool).threads(threads);
            black_box(view.gather(&request).expect("a batch"));
            step += 1;
        }
    };
    let one = view.gather(&Request::new(batches[0])).expect("a batch").into_dense().expect("dense");
    let two =
        view.gather(&Request::new(batches[0]).threads(2)).expect("a batch").into_dense().expect("dense");
    assert_eq!(
        checksum(one.data().as_bytes()),
        checksum(two.data().as_bytes()),
        "two threads made another batch"
    );
    let source = Lcg(1).bytes(STORE_BYTES.max(batch * record));
    let mut copied = vec![0_u8; batch * record];
    let mut at = 0;
    Work::new(
        format!("Dense::gather {batch} x {record} B into pooled memory"),
        (batch * record) as u64,
        batch as u64,
    )
    .variant("sequential copy of the same bytes", || {
        let from = at % (source.len() - copied.len() + 1);
        let end = from + copied.len();
        copied.copy_from_slice(&source[from..end]);
        black_box(&copied);
        at += copied.len();
    })
    .variant("1 thread", gather(1))
    .variant("2 threads", gather(2))
    .run();
}

fn gather(dir: &Path, record: usize, codec: Codec, store_bytes: usize, batch: usize) {
    let path = dir.join(format!("{record}-{}", codec.name()));
    let count = store_bytes / record;
    if !path.exists() {
        let store = Store::create(&path, CreateOptions::new().codec(codec)).expect("a new store");
        let mut random = Lcg(record as u64);
        let block = random.bytes(record * 64);
        for first in (0..count).step_by(64) {
            let records = 64.min(count - first);
            let mut bytes = block[..records * record].to_vec();
            // Each record differs, so that a wrong one is noticed.
            for (i, row) in bytes.chunks_exact_mut(record).enumerate() {
                row[..8].copy_from_slice(&((first + i) as u64).to_le_bytes());
            }
            store.append_fixed(&bytes, record).expect("an append");
        }
    }
    let store = Store::open(&path).expect("the store");
    let everything = random_indices(7, 1 << 16, count as u64);
    let batches: Vec<&[u64]> = everything.chunks_exact(batch).collect();

    let mut expected = uninit_bytes(batch * record);
    // Warm means mapped, not only resident: the first touch of each page is a fault, which this is not about.
    let in_order: Vec<u64> = (0..count as u64).collect();
    for indices in in_order.chunks_exact(batch) {
        store.gather_fixed(indices, record, &mut expected).expect("a gather");
    }
    let written = store.gather_fixed(batches[0], record, &mut expected).expect("a gather");
    for (row, index) in written.chunks_exact(record).zip(batches[0]) {
        assert_eq!(row[..8], index.to_le_bytes(), "a gather delivered another record");
    }
    black_box(checksum(written));

    let source = Lcg(1).bytes(store_bytes.max(batch * record));
    let mut copied = vec![0_u8; batch * record];
    let mut gathered = uninit_bytes(batch * record);
    let mut at = 0;
    let mut step = 0;
    Work::new(
        format!("gather {batch} x {record} B, {}", codec.name()),
        (batch * record) as u64,
        batch as u64,
    )
    .variant("sequential copy of the same bytes", || {
        let from = at % (source.len() - copied.len() + 1);
        let end = from + copied.len();
        copied.copy_from_slice(&source[from..end]);
        black_box(&copied);
        at += copied.len();
    })
    .variant("Store::gather_fixed", || {
        let written =
            store.gather_fixed(batches[step % batches.len()], record, &mut gathered).expect("a gather");
        black_box(written);
        step += 1;
    })
    .run();
}
