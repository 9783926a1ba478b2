//! A process that is killed in the middle of anything leaves a store that opens, with every finished operation in it.
//!
//! `LOADERX_KILLS` sets the number of kills of each run.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::Duration;

use loaderx_core::format::FormatVersion;
use loaderx_core::{Codec, CreateOptions, ErrorKind, OpenOptions, Store};
use loaderx_tests::churn::{Churn, Operation};
use loaderx_tests::directory::snapshot;
use loaderx_tests::model::Model;
use loaderx_tests::process::Running;
use loaderx_tests::random::Random;

const CHILD: &str = env!("CARGO_BIN_EXE_store_child");

fn kills() -> u64 {
    std::env::var("LOADERX_KILLS").map_or(40, |text| text.parse().unwrap())
}

/// What a run of kills has met: a run that never hits the middle of an operation proves nothing.
#[derive(Debug, Default)]
struct Met {
    finished_operations: u64,
    recoveries: u64,
    in_flight_done: u64,
    in_flight_undone: u64,
    interrupted: [u64; 4],
}

fn run(codec: Codec, format: FormatVersion, max_record: usize, seed: u64) -> Met {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    drop(CreateOptions::new().codec(codec).format(format).create(&path).unwrap());
    let (mut random, mut model, mut met) = (Random::new(seed), Model::default(), Met::default());
    for kill in 0..kills() {
        let child_seed = seed * 1_000_000 + kill;
        let arguments = ["churn", path.to_str().unwrap(), &child_seed.to_string(), &max_record.to_string()]
            .map(String::from);
        let mut child = Running::start(CHILD, arguments);
        assert_eq!(child.line(), format!("ready {}", model.records.len()));
        // After some operations, and somewhere within the next.
        let mut lines: Vec<String> = (0..random.below(6)).map(|_| child.line()).collect();
        std::thread::sleep(Duration::from_micros(random.below(15_000)));
        lines.extend(child.kill());
        // The last line may have been cut by the kill; only a line with a number that follows counts.
        let done = lines.iter().enumerate().take_while(|(i, line)| line.as_str() == i.to_string()).count();

        let mut churn = Churn::new(child_seed, max_record);
        for _ in 0..done {
            churn.step(model.records.len()).apply_to_model(&mut model);
        }
        let in_flight = churn.step(model.records.len());
        let mut and_then = model.clone();
        in_flight.apply_to_model(&mut and_then);
        met.finished_operations += done as u64;
        met.interrupted[match in_flight {
            Operation::Append(_) => 0,
            Operation::Delete(_) => 1,
            Operation::Compact => 2,
            Operation::Sync => 3,
        }] += 1;

        model = check(&path, model, and_then, &in_flight, &mut met);
    }
    met
}

/// Holds the store against what it may be; gives what it is.
fn check(path: &Path, before: Model, after: Model, in_flight: &Operation, met: &mut Met) -> Model {
    let files = snapshot(path);
    match OpenOptions::new().verify(true).open(path) {
        Ok(store) => {
            let wrong = before.compare(&store).or_else(|_| after.compare(&store));
            wrong.unwrap_or_else(|wrong| panic!("read beside {in_flight:?}: {wrong}"));
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NeedsRecovery, "{error}");
            met.recoveries += 1;
        }
    }
    assert!(snapshot(path) == files, "opening for reading changed the store");

    let store = Store::open_writable(path).unwrap();
    let is_before = before.compare(&store);
    let is_after = after.compare(&store);
    met.in_flight_done += u64::from(is_after.is_ok() && is_before.is_err());
    met.in_flight_undone += u64::from(is_before.is_ok() && is_after.is_err());
    match (is_before, is_after) {
        (Ok(()), _) => before,
        (_, Ok(())) => after,
        (Err(one), Err(two)) => panic!("after {in_flight:?}: neither before ({one}) nor after ({two})"),
    }
}

fn assert_thorough(met: &Met) {
    println!("{met:?}");
    assert!(met.finished_operations > kills(), "the kills came too early to mean anything: {met:?}");
    assert!(met.interrupted.iter().filter(|&&count| count > 0).count() >= 3, "{met:?}");
}

#[test]
fn killed_writers_of_raw_records_lose_nothing() {
    assert_thorough(&run(Codec::Raw, FormatVersion::V3, 3000, 1));
}

#[test]
fn killed_writers_of_compressed_records_lose_nothing() {
    assert_thorough(&run(Codec::zstd(), FormatVersion::V3, 6000, 2));
}

#[test]
fn killed_writers_of_version_4_lose_nothing() {
    assert_thorough(&run(Codec::zstd(), FormatVersion::V4, 3000, 3));
}

#[test]
fn a_killed_create_leaves_a_whole_store_or_none_and_can_be_run_again() {
    let mut random = Random::new(4);
    let (mut whole, mut none, mut in_parts) = (0, 0, 0);
    for _ in 0..kills() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Running::start(CHILD, ["create", dir.path().to_str().unwrap()]);
        assert_eq!(child.line(), "0");
        std::thread::sleep(Duration::from_micros(random.below(10_000)));
        let lines = child.kill();
        let done = 1 + lines.iter().enumerate().take_while(|(i, line)| **line == (i + 1).to_string()).count();
        for number in 0..=done {
            let path = dir.path().join(number.to_string());
            match Store::open(&path) {
                Ok(store) => {
                    assert!(store.is_empty() && store.schema().is_some() && store.codec() == Codec::zstd());
                    assert!(store.verify().unwrap().is_sound());
                    whole += 1;
                    let error = CreateOptions::new().create(&path).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
                }
                Err(error) => {
                    // Only the one that was being made.
                    assert!(
                        number == done && error.kind() == ErrorKind::NotFound,
                        "{number} of {done}: {error}"
                    );
                    none += 1;
                    in_parts += u64::from(path.exists());
                    let again = CreateOptions::new().create(&path).unwrap();
                    assert!(again.schema().is_none(), "the schema of the killed create is still there");
                }
            }
            let store = Store::open_writable(&path).unwrap();
            store.append_fixed(b"abcd", 4).unwrap();
            drop(store);
            assert_eq!(Store::open(&path).unwrap().get(0).unwrap(), b"abcd");
        }
    }
    println!("{whole} whole, {none} not there, {in_parts} of these in parts");
    assert!(none > 0, "no kill came while a store was being made");
}
