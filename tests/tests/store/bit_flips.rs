//! Flipped bits, thousands of them, in every file: never a panic, never wrong data from a checked read.
//!
//! `LOADERX_FLIPS` sets the number of flips over all stores.
#![forbid(unsafe_code)]

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::{Fault, MemoryDisk};
use loaderx_core::store::train_dictionary;
use loaderx_core::{Codec, CreateOptions, DType, ErrorKind, OpenOptions, ReadMode, Schema, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::directory::snapshot;
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;
use tempfile::TempDir;

fn flips() -> u64 {
    std::env::var("LOADERX_FLIPS").map_or(10_000, |text| text.parse().unwrap())
}

/// What came of the flips.
#[derive(Debug, Default)]
struct Tally {
    flips: u64,
    opening_refused: u64,
    record_refused: u64,
    no_effect: u64,
}

struct Case {
    _dir: TempDir,
    path: PathBuf,
    model: Model,
}

fn dictionary() -> Vec<u8> {
    let samples = Random::new(77).records(600, 200, 400);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    train_dictionary(&samples, Some(4096)).unwrap().into_dictionary().expect("the samples make a dictionary")
}

fn cases() -> Vec<Case> {
    let options = [
        CreateOptions::new().schema(Schema::dense(DType::U8, &[10, 25]).unwrap()),
        CreateOptions::new().codec(Codec::zstd()).schema(Schema::dense(DType::U8, &[250]).unwrap()),
        CreateOptions::new().codec(Codec::zstd_dict()).dictionary(dictionary()),
        CreateOptions::new().format(FormatVersion::V4),
    ];
    options
        .into_iter()
        .enumerate()
        .map(|(i, options)| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let records = Random::new(i as u64).records(24, 250, 250);
            let store = options.create(&path).unwrap();
            store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
            store.sync().unwrap();
            Case { _dir: dir, path, model: Model { records } }
        })
        .collect()
}

/// How far a file is used.
fn used(name: &str, bytes: &[u8], model: &Model) -> u64 {
    if name == "meta.zr" { 16 + 16 * model.records.len() as u64 } else { bytes.len() as u64 }
}

/// Reads everything with checks. Data that are handed out are right, or this panics.
fn read_checked(path: &Path, mode: ReadMode, model: &Model, tally: &mut Tally, what: &dyn Fn() -> String) {
    let store = match OpenOptions::new().verify(true).read_mode(mode).open(path) {
        Ok(store) => store,
        Err(error) => {
            assert!(error.path().is_some(), "{}: no file is named: {error}", what());
            tally.opening_refused += 1;
            return;
        }
    };
    let mut refused = store.len() != model.records.len() as u64;
    for index in 0..store.len() {
        match store.get(index) {
            Ok(record) => {
                assert!(
                    model.records.get(index as usize) == Some(&record),
                    "{}: record {index} is read, and wrong",
                    what()
                );
            }
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::DictionaryMismatch),
                    "{}: {error}",
                    what()
                );
                assert_eq!(error.record(), Some(index), "{}: {error}", what());
                refused = true;
            }
        }
    }
    if refused {
        tally.record_refused += 1;
        let report = store.verify();
        assert!(
            report.as_ref().is_ok_and(|report| !report.is_sound())
                || store.len() < model.records.len() as u64,
            "{}: a refused record is not in the report {report:?}",
            what()
        );
    } else {
        tally.no_effect += 1;
    }
}

#[test]
fn no_flipped_bit_in_any_file_gives_wrong_data_from_a_checked_read() {
    let mut random = Random::new(20);
    let mut tally = Tally::default();
    let cases = cases();
    for case in &cases {
        let files = snapshot(&case.path);
        let names: Vec<&String> = files.keys().filter(|name| *name != "lock.zr").collect();
        for _ in 0..flips() / cases.len() as u64 {
            let name = names[random.below(names.len() as u64) as usize];
            let used = used(name, &files[name].bytes, &case.model);
            let (at, bit) = (random.below(used), random.below(8));
            let what = || format!("{}, {name}, byte {at}, bit {bit}", case.path.display());
            let file = std::fs::File::options().write(true).open(case.path.join(name)).unwrap();
            let old = files[name].bytes[at as usize];
            file.write_all_at(&[old ^ (1 << bit)], at).unwrap();
            let mode = if random.one_in(2) { ReadMode::Mapped } else { ReadMode::Positioned };
            tally.flips += 1;
            read_checked(&case.path, mode, &case.model, &mut tally, &what);
            file.write_all_at(&[old], at).unwrap();
        }
        // All was put back, and nothing else has changed.
        assert!(snapshot(&case.path) == files);
        case.model.assert_holds(&Store::open(&case.path).unwrap());
    }
    println!("{tally:?}");
    assert!(tally.opening_refused > 0 && tally.record_refused > tally.flips / 4, "{tally:?}");
}

#[test]
fn a_store_with_a_flipped_bit_that_can_be_written_is_not_made_worse() {
    let mut random = Random::new(21);
    for case in cases() {
        let files = snapshot(&case.path);
        let names: Vec<&String> = files.keys().filter(|name| *name != "lock.zr").collect();
        for _ in 0..250 {
            let name = names[random.below(names.len() as u64) as usize];
            let (at, bit) = (random.below(used(name, &files[name].bytes, &case.model)), random.below(8));
            let what = || format!("{}, {name}, byte {at}, bit {bit}", case.path.display());
            loaderx_tests::directory::restore(&case.path, &files);
            let file = std::fs::File::options().write(true).open(case.path.join(name)).unwrap();
            file.write_all_at(&[files[name].bytes[at as usize] ^ (1 << bit)], at).unwrap();
            let Ok(store) = Store::open_writable(&case.path) else { continue };
            let before = store.len();
            let appended = store.append_slices([[5; 250].as_slice()]);
            let kept = before.min(case.model.records.len() as u64);
            drop(store);
            let store = OpenOptions::new().verify(true).open(&case.path).unwrap();
            for index in 0..kept {
                if let Ok(record) = store.get(index) {
                    assert!(record == case.model.records[index as usize], "{}: record {index}", what());
                }
            }
            if let Ok(first) = appended {
                assert_eq!(store.get(first).unwrap(), [5; 250], "{}", what());
            }
            // Only the damaged byte may have cost records: at most one of those that were there.
            if name.ends_with("0.zr") {
                let lost = (0..kept).filter(|&index| store.get(index).is_err()).count();
                assert!(lost <= 1, "{}: {lost} records are lost", what());
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_a_journal_never_gives_wrong_data() {
    let records = Random::new(8).records(12, 20, 60);
    let before = [Operation::Append(records.clone()), Operation::Delete(vec![0])];
    for (operation, delete) in [(Operation::Delete(vec![1, 5, 10]), true), (Operation::Compact, false)] {
        let (prepared, base) = crash::prepare(&CreateOptions::new(), &before);
        let mut after = base.clone();
        operation.apply_to_model(&mut after);
        // The first moment at which a complete journal lies there, its work not yet done.
        let interrupted = (1..200).find_map(|k| {
            let disk = prepared.fork();
            disk.inject(Fault::stop_at(k));
            let mut store = crash::open_writable(&disk).ok()?;
            operation.apply(&mut store).err()?;
            drop(store);
            disk.restart();
            let waits = OpenOptions::new().open_in(disk.directory());
            waits.is_err_and(|error| error.kind() == ErrorKind::NeedsRecovery).then_some(disk)
        });
        let interrupted = interrupted.expect("no call leaves a journal");
        let journal = interrupted.content("journal.zr").unwrap();
        for bit in 0..journal.len() * 8 {
            let disk: MemoryDisk = interrupted.fork();
            let mut damaged = journal.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            disk.put("journal.zr", &damaged);
            let Ok(store) = crash::open_writable(&disk) else { continue };
            let (is_before, is_after) = (base.compare(&store), after.compare(&store));
            assert!(
                is_before.is_ok() || is_after.is_ok(),
                "bit {bit} of the journal of a {}: {is_before:?}",
                if delete { "delete" } else { "compact" }
            );
        }
    }
}
