//! Every store that Python loaderx 0.9.4 wrote reads as it does there, or is refused with the reason.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use loaderx_core::{DType, Dense, ErrorKind, Kind, OpenOptions, Ragged, Schema, Store};
use loaderx_tests::directory::listing;
use loaderx_tests::golden::{self, Extent, Golden};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

/// The stores whose element type we do not have, with the word that the refusal has to name.
const REFUSED: [(&str, &str); 3] =
    [("dense_be_i4_raw", ">i4"), ("dense_c8_zstd", "<c8"), ("ragged_list_of_bytes_S5", "|S5")];

fn is_refused(golden: &Golden) -> bool {
    REFUSED.iter().any(|(name, _)| *name == golden.name)
}

fn supported() -> Vec<Golden> {
    let supported: Vec<Golden> = golden::all().into_iter().filter(|golden| !is_refused(golden)).collect();
    assert_eq!(supported.len() + REFUSED.len(), 22, "a golden store is missing");
    supported
}

/// Unpacks the store and runs `check` on it, for both lengths that its files can have.
fn for_both_extents(golden: &Golden, check: impl Fn(&Path, &Model)) {
    let model = golden.model();
    assert_eq!(model.records.len() as u64, golden.manifest["header"]["length"], "{}", golden.name);
    for extent in [Extent::Content, Extent::Python] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(&golden.name);
        golden.unpack(&path, extent);
        println!("{} {extent:?}", golden.name);
        check(&path, &model);
    }
}

#[test]
fn every_golden_store_reads_as_python_reads_it() {
    for golden in supported() {
        for_both_extents(&golden, |path, model| model.assert_holds(&Store::open(path).unwrap()));
    }
}

#[test]
fn reading_a_golden_store_changes_nothing_in_its_directory() {
    for golden in supported() {
        for_both_extents(&golden, |path, model| {
            let before = listing(path);
            model.assert_holds(&Store::open(path).unwrap());
            assert_eq!(listing(path), before);
        });
    }
}

#[test]
fn the_schema_of_a_golden_store_is_what_the_manifest_says() {
    for golden in supported() {
        for_both_extents(&golden, |path, _| {
            let store = Store::open(path).unwrap();
            let Some(dtype) = golden.dtype() else {
                assert_eq!(store.schema(), None);
                return;
            };
            let schema = store.schema().unwrap();
            let expected = match schema.kind() {
                Kind::Dense => Schema::dense(DType::from_numpy(dtype).unwrap(), &golden.item_shape()),
                Kind::Ragged => Schema::ragged(DType::from_numpy(dtype).unwrap(), &golden.item_shape()),
            };
            assert_eq!(schema.kind().name(), golden.manifest["schema"]["kind"]);
            assert_eq!(*schema, expected.unwrap());
            assert_eq!(store.codec().name(), golden.manifest["schema"]["codec"]);
        });
    }
}

#[test]
fn a_dense_golden_store_gives_batches_of_its_shape() {
    let mut seen = 0;
    for golden in supported().iter().filter(|golden| golden.manifest["kind"] == "dense") {
        seen += 1;
        for_both_extents(golden, |path, model| {
            let dense = Dense::open(path).unwrap();
            let indices: Vec<u64> = (0..dense.len()).rev().collect();
            let batch = dense.batch(&indices).unwrap();
            let mut shape = vec![model.records.len()];
            shape.extend(golden.item_shape());
            assert_eq!(batch.shape(), shape);
            let expected: Vec<u8> = model.records.iter().rev().flatten().copied().collect();
            assert_eq!(batch.data().as_bytes(), expected);
        });
    }
    assert_eq!(seen, 14);
}

#[test]
fn a_ragged_golden_store_gives_packed_batches() {
    let mut seen = 0;
    for golden in supported().iter().filter(|golden| golden.manifest["kind"] == "ragged") {
        seen += 1;
        for_both_extents(golden, |path, model| {
            let ragged = Ragged::open(path).unwrap();
            let indices: Vec<u64> = (0..ragged.len()).rev().collect();
            let batch = ragged.batch(&indices).unwrap();
            let row: usize = golden.item_shape().iter().product::<usize>() * ragged.dtype().size();
            let mut offsets = vec![0];
            for record in model.records.iter().rev() {
                offsets.push(offsets[offsets.len() - 1] + (record.len() / row) as i64);
            }
            assert_eq!(batch.offsets(), offsets);
            let expected: Vec<u8> = model.records.iter().rev().flatten().copied().collect();
            assert_eq!(batch.values().as_bytes(), expected);
        });
    }
    assert_eq!(seen, 3);
}

#[test]
fn appending_to_a_golden_store_keeps_what_it_holds() {
    for golden in supported() {
        for_both_extents(&golden, |path, model| {
            let mut model = model.clone();
            let store = Store::open_writable(path).unwrap();
            let item = store.schema().map_or(16, |schema| schema.item_bytes());
            let size = model.records.first().map_or(item, Vec::len);
            let new: Vec<Vec<u8>> = Random::new(1).records(9, size, size);
            let first = store.append_slices(new.iter().map(Vec::as_slice)).unwrap();
            assert_eq!(first, model.append(&new));
            model.assert_holds(&store);
            store.sync().unwrap();
            drop(store);
            model.assert_holds(&Store::open(path).unwrap());
        });
    }
}

#[test]
fn a_golden_store_of_another_element_type_is_refused_by_its_name() {
    for (name, word) in REFUSED {
        for_both_extents(&golden::named(name), |path, _| {
            let before = listing(path);
            for writable in [false, true] {
                let error = OpenOptions::new().writable(writable).open(path).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.to_string().contains(word), "{error}");
                assert!(error.hint().is_some(), "{error}");
            }
            let mut after = listing(path);
            // The writer's lock comes before anything is looked at; its empty file stays.
            after.remove("lock.zr");
            assert_eq!(after, before, "a refusal changed the store");
        });
    }
}

#[test]
fn without_its_schema_a_refused_store_reads_as_plain_bytes() {
    for (name, _) in REFUSED {
        for_both_extents(&golden::named(name), |path, model| {
            fs::remove_file(path.join("schema.msgpack")).unwrap();
            model.assert_holds(&Store::open(path).unwrap());
        });
    }
}

#[test]
fn a_golden_store_of_an_unknown_version_is_refused_by_number() {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("x");
    golden::named("dense_f32_raw").unpack(&path, Extent::Content);
    for version in [0_u16, 1, 2, 5, 1000] {
        let mut meta = fs::read(path.join("meta.zr")).unwrap();
        meta[4..6].copy_from_slice(&version.to_le_bytes());
        fs::write(path.join("meta.zr"), meta).unwrap();
        for writable in [false, true] {
            let error = OpenOptions::new().writable(writable).open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&format!("version {version}")), "{error}");
        }
    }
}
