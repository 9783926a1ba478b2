//! Files that end too early: what is left can be read, what is lost is named, nothing is wiped.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use loaderx_core::store::repair;
use loaderx_core::{Codec, CreateOptions, ErrorKind, OpenOptions, ReadMode, Store};
use loaderx_tests::directory::{Snapshot, restore, snapshot};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

struct Case {
    path: PathBuf,
    model: Model,
    files: Snapshot,
    /// Where each record's stored bytes end, in the chunk.
    ends: Vec<u64>,
}

fn case(dir: &Path, codec: Codec) -> Case {
    let path = dir.join(codec.name());
    let records = Random::new(3).records(12, 30, 300);
    let store = CreateOptions::new().codec(codec).create(&path).unwrap();
    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    drop(store);
    let files = snapshot(&path);
    let table = &files["meta.zr"].bytes;
    let number = |at: usize| u64::from(u32::from_le_bytes(table[at..at + 4].try_into().unwrap()));
    let ends = (0..12).map(|i| number(16 + 16 * i) + number(16 + 16 * i + 4)).collect();
    Case { path, model: Model { records }, files, ends }
}

fn cut(path: &Path, name: &str, length: u64) {
    fs::File::options().write(true).open(path.join(name)).unwrap().set_len(length).unwrap();
}

#[test]
fn a_chunk_cut_anywhere_loses_the_records_behind_the_cut_and_says_which() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [Codec::Raw, Codec::zstd()] {
        let case = case(dir.path(), codec);
        let full = case.files["0.zr"].length;
        let mut lengths: Vec<u64> = case.ends.iter().flat_map(|&end| [end - 1, end, end + 1]).collect();
        lengths.extend([0, full / 2]);
        for length in lengths.into_iter().filter(|&length| length < full) {
            for mode in [ReadMode::Mapped, ReadMode::Positioned] {
                cut(&case.path, "0.zr", length);
                let store = OpenOptions::new().read_mode(mode).open(&case.path).unwrap();
                for (index, record) in case.model.records.iter().enumerate() {
                    let read = store.get(index as u64);
                    if case.ends[index] <= length {
                        assert_eq!(read.unwrap(), *record, "{length} bytes are left, record {index}");
                        continue;
                    }
                    let error = read.unwrap_err();
                    assert!(error.is_corrupt(), "{error}");
                    assert_eq!(error.record(), Some(index as u64), "{error}");
                    assert!(error.path().unwrap().ends_with("0.zr"), "{error}");
                    // The found length and where the record should end.
                    let text = error.to_string();
                    assert!(text.contains(&length.to_string()), "{length}: {text}");
                    assert!(text.contains(&case.ends[index].to_string()), "{}: {text}", case.ends[index]);
                }
                let report = store.verify().unwrap();
                let bad: Vec<u64> = report.faults.iter().filter_map(|fault| fault.record).collect();
                let expected: Vec<u64> = (0..12).filter(|&i| case.ends[i as usize] > length).collect();
                assert_eq!(bad, expected, "verify goes on after the first fault");
                drop(store);
                restore(&case.path, &case.files);
            }
        }
    }
}

#[test]
fn opening_a_cut_store_for_writing_takes_nothing_that_is_left() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [Codec::Raw, Codec::zstd()] {
        let case = case(dir.path(), codec);
        let length = case.ends[6];
        for (name, to) in [("0.zr", length), ("meta.zr", 16 + 16 * 7), ("check.zr", 140), ("check.zr", 0)] {
            restore(&case.path, &case.files);
            cut(&case.path, name, to);
            if let Ok(store) = Store::open_writable(&case.path) {
                let first = store.append_slices([b"new".as_slice()]).unwrap();
                assert_eq!(store.get(first).unwrap(), b"new");
                drop(store);
                let store = Store::open(&case.path).unwrap();
                assert_eq!(store.get(first).unwrap(), b"new");
                // What is lost stays lost, also for reads without checks: no append puts zeros in its place.
                for (index, record) in case.model.records.iter().enumerate().take(first as usize) {
                    let Ok(read) = store.get(index as u64) else { continue };
                    assert_eq!(read, *record, "{name} cut to {to}, record {index}");
                }
            }
            // Every byte that was there before is still there.
            let now = snapshot(&case.path);
            let kept =
                |name: &str, until: usize| now[name].bytes.starts_with(&case.files[name].bytes[..until]);
            assert!(
                kept("0.zr", if name == "0.zr" { length } else { case.files["0.zr"].length } as usize),
                "{name}"
            );
            let entries = if name == "meta.zr" { 7 } else { 12 };
            assert!(
                now["meta.zr"].bytes[16..].starts_with(&case.files["meta.zr"].bytes[16..16 + 16 * entries]),
                "{name}"
            );
        }
    }
}

#[test]
fn a_cut_record_table_is_an_error_and_repair_keeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let case = case(dir.path(), Codec::zstd());
    for left in [0_u64, 15, 16, 17, 16 + 16 * 5, 16 + 16 * 5 + 9, 16 + 16 * 12 - 1] {
        restore(&case.path, &case.files);
        cut(&case.path, "meta.zr", left);
        for writable in [false, true] {
            let error = OpenOptions::new().writable(writable).open(&case.path).unwrap_err();
            assert!(error.is_corrupt(), "{left}: {error}");
            assert!(error.path().unwrap().ends_with("meta.zr"), "{error}");
            assert!(error.to_string().contains(&left.to_string()), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
        if left < 16 {
            assert!(repair(&case.path).is_err());
            continue;
        }
        let entries = (left - 16) / 16;
        let report = repair(&case.path).unwrap();
        assert_eq!((report.records, report.entries_lost), (entries, 12 - entries), "{report:?}");
        let store = Store::open(&case.path).unwrap();
        Model { records: case.model.records[..entries as usize].to_vec() }.assert_holds(&store);
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn repair_puts_damaged_records_aside_and_keeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [Codec::Raw, Codec::zstd()] {
        let case = case(dir.path(), codec);
        let mut chunk = case.files["0.zr"].bytes.clone();
        // One byte within record 3, one within record 8.
        for record in [3, 8] {
            chunk[case.ends[record] as usize - 2] ^= 0x10;
        }
        fs::write(case.path.join("0.zr"), &chunk).unwrap();
        let bad: Vec<u64> = Store::open(&case.path)
            .unwrap()
            .verify()
            .unwrap()
            .faults
            .iter()
            .filter_map(|fault| fault.record)
            .collect();
        assert_eq!(bad, [3, 8]);
        let report = repair(&case.path).unwrap();
        assert_eq!(report.removed, [3, 8], "{report:?}");
        assert_eq!(report.records, 10);
        assert!(!report.aside.is_empty() && report.aside.iter().all(|name| case.path.join(name).is_file()));
        let mut model = case.model.clone();
        model.delete(&[3, 8]);
        let store = Store::open_writable(&case.path).unwrap();
        model.assert_holds(&store);
        assert!(store.verify().unwrap().is_sound());
        // What was put aside is the damaged bytes themselves.
        let aside = report.aside.iter().find(|name| name.ends_with(".bin")).unwrap();
        let aside = fs::read(case.path.join(aside)).unwrap();
        let damaged = &chunk[case.ends[2] as usize..case.ends[3] as usize];
        assert!(aside.windows(damaged.len()).any(|window| window == damaged));
    }
}

#[test]
fn a_missing_chunk_or_header_is_never_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let case = case(dir.path(), Codec::Raw);
    fs::remove_file(case.path.join("0.zr")).unwrap();
    if let Ok(store) = Store::open(&case.path) {
        let error = store.get(0).unwrap_err();
        assert!(error.is_corrupt() || error.is_not_found(), "{error}");
        assert!(error.to_string().contains("0.zr"), "{error}");
    }
    assert!(Store::open_writable(&case.path).is_err());
    assert!(!case.path.join("0.zr").exists(), "a lost chunk was replaced by an empty one");

    restore(&case.path, &case.files);
    fs::remove_file(case.path.join("meta.zr")).unwrap();
    for writable in [false, true] {
        let error = OpenOptions::new().writable(writable).open(&case.path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("restore meta.zr"), "{error}");
    }
    // Nor is a new store put over the records of the old one.
    let error = CreateOptions::new().create(&case.path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert!(snapshot(&case.path)["0.zr"] == case.files["0.zr"]);
}
