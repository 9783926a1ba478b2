//! One store, two programs: what Rust writes Python loaderx 0.9.4 reads, and the other way round.
//!
//! Skipped, with the reason printed, where the Python package cannot be installed.
#![forbid(unsafe_code)]

use std::path::Path;

use loaderx_core::{Codec, CreateOptions, DType, Dense, Schema, Store};
use loaderx_tests::model::Model;
use loaderx_tests::python::{self, Python};
use loaderx_tests::random::Random;
use serde_json::json;

const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

fn start() -> Option<Python> {
    Python::start(Path::new(SCRATCH))
}

fn append(path: &Path, records: &[Vec<u8>]) -> u64 {
    let store = Store::open_writable(path).unwrap();
    let first = store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    first
}

fn create(path: &Path, codec: Codec) {
    drop(CreateOptions::new().codec(codec).create(path).unwrap());
}

#[test]
fn python_reads_the_plain_bytes_that_rust_wrote() {
    let Some(mut python) = start() else { return };
    for codec in [Codec::Raw, Codec::zstd(), Codec::Zstd { level: 19 }] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut records = Random::new(2).records(300, 1, 5000);
        records.push(vec![9; 1 << 20]);
        records.push(Random::new(3).record(1));
        let store = CreateOptions::new().codec(codec).create(&path).unwrap();
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        // Not synced and still open: the files alone count.
        assert!(python.read(&path) == records, "{codec:?}");
        drop(store);
        assert!(python.read(&path) == records, "{codec:?}");
        Model { records }.assert_holds(&Store::open(&path).unwrap());
    }
}

#[test]
fn rust_reads_the_plain_bytes_that_python_wrote() {
    let Some(mut python) = start() else { return };
    for codec in ["raw", "zstd"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut records = Random::new(4).records(300, 1, 5000);
        records.push(vec![9; 1 << 20]);
        assert_eq!(python.append(&path, &records, codec), 0);
        Model { records }.assert_holds(&Store::open(&path).unwrap());
    }
}

#[test]
fn a_dense_store_of_rust_is_a_dense_dataset_of_python() {
    let Some(mut python) = start() else { return };
    for dtype in DType::ALL {
        for (item_shape, codec) in
            [(&[][..], Codec::Raw), (&[3, 5], Codec::zstd()), (&[1, 2, 40], Codec::zstd())]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let schema = Schema::dense(dtype, item_shape).unwrap();
            let size = schema.item_bytes();
            let mut records = Random::new(5).records(20, size, size);
            if dtype == DType::Bool {
                records.iter_mut().flatten().for_each(|byte| *byte &= 1);
            }
            let store = CreateOptions::new().codec(codec).schema(schema).create(&path).unwrap();
            store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
            drop(store);
            let read = python.request(&json!({"do": "read_dense", "path": path})).unwrap();
            assert_eq!(read["dtype"], dtype.numpy());
            assert_eq!(read["item_shape"], json!(item_shape));
            assert_eq!(read["codec"], codec.name());
            assert!(python::records(&read["records"]) == records, "{dtype} {item_shape:?}");
        }
    }
}

#[test]
fn a_dense_dataset_of_python_is_a_dense_store_of_rust() {
    let Some(mut python) = start() else { return };
    for dtype in DType::ALL {
        for (item_shape, codec) in [(&[][..], "raw"), (&[3, 5], "zstd"), (&[1, 2, 40], "zstd")] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let size = Schema::dense(dtype, item_shape).unwrap().item_bytes();
            let mut records = Random::new(6).records(20, size, size);
            if dtype == DType::Bool {
                records.iter_mut().flatten().for_each(|byte| *byte &= 1);
            }
            let written = python.request(&json!({
                "do": "write_dense", "path": path, "records": python::texts(&records),
                "dtype": dtype.numpy(), "item_shape": item_shape, "codec": codec,
            }));
            assert_eq!(written.unwrap(), 20);
            let dense = Dense::open(&path).unwrap();
            assert_eq!((dense.dtype(), dense.item_shape()), (dtype, item_shape));
            assert_eq!(dense.store().codec().name(), codec);
            let indices: Vec<u64> = (0..20).collect();
            assert_eq!(dense.batch(&indices).unwrap().data().as_bytes(), records.concat());
        }
    }
}

#[test]
fn a_ragged_store_goes_both_ways() {
    let Some(mut python) = start() else { return };
    for (dtype, item_shape) in [(DType::I32, &[][..]), (DType::F32, &[3]), (DType::U8, &[2, 2])] {
        let schema = Schema::ragged(dtype, item_shape).unwrap();
        let size = schema.item_bytes();
        let mut random = Random::new(7);
        let records: Vec<Vec<u8>> = (0..40)
            .map(|_| {
                let rows = 1 + random.below(60) as usize;
                random.record(rows * size)
            })
            .collect();

        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        let written = python.request(&json!({
            "do": "write_ragged", "path": theirs, "records": python::texts(&records),
            "dtype": dtype.numpy(), "item_shape": item_shape, "codec": "zstd",
        }));
        assert_eq!(written.unwrap(), 40);
        let store = Store::open(&theirs).unwrap();
        assert_eq!(store.schema(), Some(&schema));
        Model { records: records.clone() }.assert_holds(&store);

        let ours = dir.path().join("ours");
        let store = CreateOptions::new().codec(Codec::zstd()).schema(schema).create(&ours).unwrap();
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        drop(store);
        let read = python.request(&json!({"do": "read_ragged", "path": ours})).unwrap();
        assert_eq!((&read["dtype"], &read["item_shape"]), (&json!(dtype.numpy()), &json!(item_shape)));
        assert!(python::records(&read["records"]) == records, "{dtype} {item_shape:?}");
    }
}

#[test]
fn appends_of_both_sides_share_one_store() {
    let Some(mut python) = start() else { return };
    for rust_begins in [true, false] {
        for (codec, name) in [(Codec::Raw, "raw"), (Codec::zstd(), "zstd")] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let mut random = Random::new(8);
            let mut model = Model::default();
            if rust_begins {
                create(&path, codec);
            }
            for round in 0..6 {
                let records = random.records(30, 1, 900);
                let first = if (round % 2 == 0) == rust_begins {
                    append(&path, &records)
                } else {
                    python.append(&path, &records, name)
                };
                assert_eq!(first, model.append(&records));
                model.assert_holds(&Store::open(&path).unwrap());
                assert!(python.read(&path) == model.records);
            }
        }
    }
}
