//! A disk that is really full: an error that says so, and everything committed stays. Needs root, for a small tmpfs.
#![forbid(unsafe_code)]

use std::fs;

use loaderx_core::format::FormatVersion;
use loaderx_core::{Codec, CreateOptions, Error, OpenOptions, ReadMode, Store};
use loaderx_tests::model::Model;
use loaderx_tests::mount::Tmpfs;
use loaderx_tests::random::Random;

fn assert_full(error: &Error) {
    assert!(error.is_storage_full(), "{error}");
    assert!(error.path().is_some(), "no path in: {error}");
    assert!(error.hint().is_some(), "no hint in: {error}");
}

/// Appends batches until the disk is full; the model holds those that were taken.
fn fill(store: &Store, model: &mut Model, random: &mut Random, record: usize) -> Error {
    for _ in 0..100_000 {
        let batch = random.records(8, record, record);
        match store.append_slices(batch.iter().map(Vec::as_slice)) {
            Ok(first) => assert_eq!(first, model.append(&batch)),
            Err(error) => return error,
        }
    }
    panic!("the disk does not get full");
}

#[test]
fn appends_to_a_full_disk_fail_and_take_nothing_away() {
    for (record, codec, format) in [
        (20, Codec::Raw, FormatVersion::V3),
        (900, Codec::Raw, FormatVersion::V4),
        (60_000, Codec::Raw, FormatVersion::V3),
        (900, Codec::zstd(), FormatVersion::V3),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let Some(_mount) = Tmpfs::new(dir.path(), "3m") else { return };
        let ballast = dir.path().join("ballast");
        fs::write(&ballast, vec![1; 1_600_000]).unwrap();
        let path = dir.path().join("x");
        let mut store = CreateOptions::new().codec(codec).format(format).create(&path).unwrap();
        let (mut model, mut random) = (Model::default(), Random::new(record as u64));

        let error = fill(&store, &mut model, &mut random, record);
        assert_full(&error);
        assert!(!model.records.is_empty());
        // Again and again: each refusal leaves the state as it was.
        for _ in 0..5 {
            let batch = random.records(8, record, record);
            match store.append_slices(batch.iter().map(Vec::as_slice)) {
                Ok(first) => assert_eq!(first, model.append(&batch)),
                Err(error) => assert_full(&error),
            }
        }
        model.assert_holds(&store);
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            model.assert_holds(&OpenOptions::new().read_mode(mode).open(&path).unwrap());
        }

        // Nor may a delete or a compact that finds no room break anything. What was written down before the room ended
        // may be finished by opening the store again.
        let half: Vec<u64> = (0..store.len()).step_by(2).collect();
        let mut after = model.clone();
        after.delete(&half);
        match store.delete(&half) {
            Ok(_) => model = after.clone(),
            Err(error) => assert_full(&error),
        }
        drop(store);
        let mut store = Store::open_writable(&path).unwrap();
        if after.compare(&store).is_ok() {
            model = after;
        }
        model.assert_holds(&store);
        if let Err(error) = store.compact() {
            assert_full(&error);
        }
        drop(store);
        let mut store = Store::open_writable(&path).unwrap();
        model.assert_holds(&store);

        // With room again everything goes on.
        fs::remove_file(&ballast).unwrap();
        let half: Vec<u64> = (0..store.len()).step_by(2).collect();
        model.delete(&half);
        store.delete(&half).unwrap();
        store.compact().unwrap();
        let batch = random.records(3, record, record);
        store.append_slices(batch.iter().map(Vec::as_slice)).unwrap();
        model.append(&batch);
        store.sync().unwrap();
        model.assert_holds(&store);
        drop(store);
        let store = Store::open(&path).unwrap();
        model.assert_holds(&store);
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn creating_a_store_on_a_full_disk_fails_and_can_be_done_later() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Tmpfs::new(dir.path(), "64k") else { return };
    let ballast = dir.path().join("ballast");
    fs::write(&ballast, vec![1; 60_000]).unwrap();
    // Whatever is left of a page or two.
    let _ = fs::write(dir.path().join("rest"), vec![1; 8192]);
    let path = dir.path().join("x");
    let error = CreateOptions::new().create(&path).unwrap_err();
    assert_full(&error);
    fs::remove_file(&ballast).unwrap();
    let store = CreateOptions::new().create(&path).unwrap();
    store.append_fixed(b"abcd", 2).unwrap();
    assert_eq!(store.get(1).unwrap(), b"cd");
}
