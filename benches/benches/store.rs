//! Appending, opening and one gather of a store of many small records, beside plain writes of the same bytes.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;

use loaderx_benches::{Lcg, Work, rounds_wanted, uninit_bytes};
use loaderx_core::{Codec, CreateOptions, Store};

fn main() {
    for (codec, record) in [(Codec::Raw, 784), (Codec::Raw, 12 * 1024), (Codec::zstd(), 784)] {
        append(codec, record);
    }
    open_many();
}

fn append(codec: Codec, record: usize) {
    let block = Lcg(3).bytes((4 << 20) / record * record);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut file = File::create(dir.path().join("plain")).expect("a file");
    let store =
        Store::create(dir.path().join("store"), CreateOptions::new().codec(codec)).expect("a new store");
    Work::new(
        format!("append 4 MiB of {record} B, {}", codec.name()),
        block.len() as u64,
        (block.len() / record) as u64,
    )
    .variant("plain sequential writes", || file.write_all(&block).expect("a write"))
    .variant("Store::append_fixed", || {
        store.append_fixed(&block, record).expect("an append");
    })
    .run();
}

fn open_many() {
    let records: usize = if rounds_wanted() > 3 { 10_000_000 } else { 10_000 };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("many");
    let store = Store::create(&path, CreateOptions::new()).expect("a new store");
    let block = Lcg(5).bytes(16 * 10_000);
    for _ in 0..records / 10_000 {
        store.append_fixed(&block, 16).expect("an append");
    }
    store.sync().expect("a sync");
    drop(store);
    Work::new(format!("open a store of {records} records"), 0, records as u64)
        .variant("open and read 16 bytes of a file", || {
            let mut bytes = [0; 16];
            let mut file = File::open(path.join("meta.zr")).expect("the table");
            std::io::Read::read_exact(&mut file, &mut bytes).expect("a header");
            black_box(bytes);
        })
        .variant("Store::open", || {
            black_box(Store::open(&path).expect("the store"));
        })
        .run();
    let store = Store::open(&path).expect("the store");
    let indices: Vec<u64> = (0..256).map(|i| i * (records as u64 / 256)).collect();
    let mut room = uninit_bytes(256 * 16);
    Work::new(format!("gather 256 x 16 B of {records} records"), 256 * 16, 256)
        .variant("Store::gather_fixed", || {
            black_box(store.gather_fixed(&indices, 16, &mut room).expect("a gather"));
        })
        .run();
    Work::new(format!("statistics of {records} records"), 0, records as u64)
        .variant("Store::stats", || {
            let stats = store.stats().expect("statistics");
            assert_eq!(stats.records, records as u64);
            black_box(stats);
        })
        .run();
}
