//! One store, two programs: what Rust writes Python loaderx 0.9.4 reads, and the other way round.
//!
//! Skipped, with the reason printed, where the Python package cannot be installed.
#![forbid(unsafe_code)]

use std::path::Path;

use loaderx_core::store::train_dictionary;
use loaderx_core::{Codec, CreateOptions, DType, Dense, Literals, OpenOptions, Schema, Store};
use loaderx_tests::churn::{Churn, Operation};
use loaderx_tests::model::Model;
use loaderx_tests::process::Running;
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
    let raw_literals = Codec::zstd().with_literals(Literals::Raw);
    for codec in [Codec::Raw, Codec::zstd(), Codec::zstd().with_level(19), raw_literals] {
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

#[test]
fn deletes_and_compactions_of_both_sides_in_any_order_keep_every_record() {
    let Some(mut python) = start() else { return };
    for (codec, name) in [(Codec::Raw, "raw"), (Codec::zstd(), "zstd")] {
        for seed in 0..3 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            create(&path, codec);
            let (mut random, mut model) = (Random::new(seed), Model::default());
            let mut churn = Churn::new(seed, 700);
            for step in 0..30 {
                let operation = churn.step(model.records.len());
                if random.one_in(2) {
                    match &operation {
                        Operation::Append(records) => drop(python.append(&path, records, name)),
                        Operation::Delete(indices) => python.delete(&path, indices),
                        Operation::Compact => python.compact(&path),
                        Operation::Sync => {}
                    }
                } else {
                    // Without a sync of its own: closing is enough.
                    operation.apply(&mut Store::open_writable(&path).unwrap()).unwrap();
                }
                operation.apply_to_model(&mut model);
                assert!(
                    python.read(&path) == model.records,
                    "seed {seed}, step {step}: Python after {operation:?}"
                );
                let store = OpenOptions::new().verify(true).open(&path).unwrap();
                model.compare(&store).unwrap_or_else(|wrong| panic!("seed {seed}, step {step}: {wrong}"));
                let report = store.verify().unwrap();
                assert!(report.is_sound(), "seed {seed}, step {step}: a false alarm: {report:?}");
            }
        }
    }
}

#[test]
fn a_dictionary_of_either_side_serves_both() {
    let Some(mut python) = start() else { return };
    let samples = Random::new(9).records(800, 200, 500);
    let dir = tempfile::tempdir().unwrap();

    let ours = dir.path().join("ours");
    let slices: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = train_dictionary(&slices, None).unwrap().into_dictionary().unwrap();
    let mut model = Model::default();
    drop(CreateOptions::new().codec(Codec::zstd_dict()).dictionary(dictionary).create(&ours).unwrap());
    let theirs = dir.path().join("theirs");
    let trained = python.request(&json!({
        "do": "train", "path": theirs, "records": python::texts(&samples), "target": 8192,
    }));
    assert!(trained.unwrap().as_u64().unwrap() > 256);

    for path in [&ours, &theirs] {
        model.records.clear();
        for round in 0..4 {
            let records = Random::new(100 + round).records(40, 100, 500);
            let first = if round % 2 == 0 {
                let store = OpenOptions::new().writable(true).codec(Codec::zstd_dict()).open(path).unwrap();
                store.append_slices(records.iter().map(Vec::as_slice)).unwrap()
            } else {
                python.append(path, &records, "zstd_dict")
            };
            assert_eq!(first, model.append(&records));
            assert!(python.read(path) == model.records);
            let store = OpenOptions::new().verify(true).open(path).unwrap();
            model.assert_holds(&store);
        }
        let stats = Store::open(path).unwrap().stats().unwrap();
        assert!(stats.zstd_dict_records > 80, "{stats:?}");
    }
}

#[test]
fn records_of_python_survive_a_kill_of_the_rust_writer_that_came_after() {
    let Some(mut python) = start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    create(&path, Codec::Raw);
    let mut model = Model::default();
    let mut random = Random::new(12);
    for _ in 0..3 {
        let records = random.records(10, 1, 200);
        python.append(&path, &records, "raw");
        model.append(&records);
        let mut child =
            Running::start(env!("CARGO_BIN_EXE_store_child"), ["hold-after-append", path.to_str().unwrap()]);
        assert_eq!(child.line(), format!("ok {}", model.records.len()));
        child.kill();
        model.append(&[b"appended".to_vec()]);
        let store = Store::open_writable(&path).unwrap();
        assert_eq!(store.recovery().and_then(|recovery| recovery.truncated_at), None);
        model.assert_holds(&store);
    }
}
