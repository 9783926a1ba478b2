//! Every crash that the write protocol can meet, at every call that changes something.
//!
//! A scenario is a prepared store and a list of operations. It runs once undisturbed to count its changing calls, and
//! then once for every call with a fault there. After each the store is read, opened for writing, compared with what it
//! may be, appended to, and opened again.
#![forbid(unsafe_code)]

use std::io::ErrorKind as IoKind;

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_core::{Codec, CreateOptions, Store};
use loaderx_tests::churn::{Churn, Operation};
use loaderx_tests::crash::{self, Outcome};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

struct Scenario {
    name: &'static str,
    disk: MemoryDisk,
    base: Model,
    operations: Vec<Operation>,
}

impl Scenario {
    fn new(
        name: &'static str,
        options: &CreateOptions,
        before: &[Operation],
        operations: impl IntoIterator<Item = Operation>,
    ) -> Self {
        let (disk, base) = crash::prepare(options, before);
        Self { name, disk, base, operations: operations.into_iter().collect() }
    }

    /// Runs with `fault`; gives the disk as the fault left it.
    fn run(&self, fault: Option<Fault>) -> (MemoryDisk, Outcome) {
        let (disk, outcome, _) = self.run_and_keep(fault);
        (disk, outcome)
    }

    fn run_and_keep(&self, fault: Option<Fault>) -> (MemoryDisk, Outcome, Option<Store>) {
        let disk = self.disk.fork();
        let mut outcome = Outcome::start(&self.base);
        if let Some(fault) = fault {
            disk.inject(fault);
        }
        match crash::open_writable(&disk) {
            Ok(mut store) => {
                outcome.run(&mut store, &self.operations);
                (disk, outcome, Some(store))
            }
            Err(error) => {
                outcome.error = Some(error);
                (disk, outcome, None)
            }
        }
    }

    /// The number of changing calls of an undisturbed run.
    fn calls(&self) -> u64 {
        let (disk, outcome) = self.run(None);
        assert!(outcome.error.is_none(), "{}: {:?}", self.name, outcome.error);
        let calls = disk.changes();
        assert!(calls > 0, "{}", self.name);
        calls
    }
}

fn noise(seed: u64, count: usize, min: usize, max: usize) -> Vec<Vec<u8>> {
    Random::new(seed).records(count, min, max)
}

/// Every kind of operation, on stores of every kind.
fn scenarios() -> Vec<Scenario> {
    let raw = CreateOptions::new();
    let zstd = CreateOptions::new().codec(Codec::zstd());
    let fourth = CreateOptions::new().format(FormatVersion::V4);
    let some = [Operation::Append(noise(1, 12, 1, 60))];
    let every_third: Vec<u64> = (0..12).step_by(3).collect();
    let holes = [Operation::Append(noise(1, 12, 1, 60)), Operation::Delete(every_third.clone())];
    // The first record goes and the next ones are longer than the hole: each slides over its own old place.
    let mut sliding = vec![vec![7; 3]];
    sliding.extend(noise(2, 8, 20, 90));
    let sliding = [Operation::Append(sliding), Operation::Delete(vec![0])];
    let mut empty_records = noise(3, 5, 0, 9);
    empty_records.push(Vec::new());

    let mut scenarios = vec![
        Scenario::new("append to an empty store", &raw, &[], [Operation::Append(noise(4, 5, 1, 40))]),
        Scenario::new("append", &raw, &some, [Operation::Append(noise(4, 5, 1, 40))]),
        Scenario::new("append, compressed", &zstd, &some, [Operation::Append(noise(5, 5, 1, 400))]),
        Scenario::new("append, version 4", &fourth, &some, [Operation::Append(empty_records)]),
        Scenario::new(
            "append and sync in turn",
            &raw,
            &some,
            [
                Operation::Append(noise(6, 2, 1, 40)),
                Operation::Sync,
                Operation::Append(noise(7, 2, 1, 40)),
                Operation::Append(noise(8, 2, 1, 40)),
                Operation::Sync,
            ],
        ),
        Scenario::new("delete some", &raw, &some, [Operation::Delete(vec![3, 0, 11, 3])]),
        Scenario::new("delete the last", &zstd, &some, [Operation::Delete(vec![11])]),
        Scenario::new("delete all", &raw, &some, [Operation::Delete((0..12).collect())]),
        Scenario::new(
            "delete what is not synced",
            &raw,
            &some,
            [Operation::Append(noise(9, 4, 1, 40)), Operation::Delete(vec![1, 13])],
        ),
        Scenario::new("compact", &raw, &holes, [Operation::Compact]),
        Scenario::new("compact, compressed", &zstd, &holes, [Operation::Compact]),
        Scenario::new("compact over the old places", &raw, &sliding, [Operation::Compact]),
        Scenario::new("compact nothing", &raw, &some, [Operation::Compact]),
        Scenario::new(
            "compact what is not synced",
            &raw,
            &some,
            [Operation::Append(noise(10, 4, 1, 40)), Operation::Delete(vec![2]), Operation::Compact],
        ),
        Scenario::new(
            "delete all, compact, append",
            &raw,
            &some,
            [
                Operation::Delete((0..12).collect()),
                Operation::Compact,
                Operation::Append(noise(11, 3, 1, 40)),
            ],
        ),
    ];
    for seed in 0..3 {
        let mut churn = Churn::new(seed, 50);
        let mut model = Model::default();
        let operations: Vec<Operation> = (0..8)
            .map(|_| {
                let operation = churn.step(model.records.len());
                operation.apply_to_model(&mut model);
                operation
            })
            .collect();
        scenarios.push(Scenario::new("anything", if seed == 1 { &zstd } else { &raw }, &[], operations));
    }
    scenarios
}

/// A reader that comes before any writer is given what is true, or an error.
fn assert_reads_truth(disk: &MemoryDisk, outcome: &Outcome, what: &dyn Fn() -> String) {
    if let Err(wrong) = crash::check_reader(disk, &[&outcome.current, &outcome.after]) {
        panic!("{}: {wrong}", what());
    }
}

/// The store is what `allowed` says, takes an append, and still holds everything when it is opened once more.
fn assert_recovers(
    disk: &MemoryDisk,
    allowed: impl FnOnce(&Store) -> Result<Model, String>,
    what: &dyn Fn() -> String,
) -> Model {
    let store = crash::open_writable(disk).unwrap_or_else(|error| panic!("{}: {error}", what()));
    let mut model = allowed(&store).unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
    let new = noise(99, 2, 1, 30);
    store
        .append_slices(new.iter().map(Vec::as_slice))
        .unwrap_or_else(|error| panic!("{}: append: {error}", what()));
    model.append(&new);
    model.compare(&store).unwrap_or_else(|wrong| panic!("{}: after an append: {wrong}", what()));
    drop(store);
    let store = crash::open_writable(disk).unwrap_or_else(|error| panic!("{}: again: {error}", what()));
    model.compare(&store).unwrap_or_else(|wrong| panic!("{}: opened again: {wrong}", what()));
    model
}

#[test]
fn a_kill_before_any_call_leaves_the_state_before_or_after() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() {
            let (disk, outcome) = scenario.run(Some(Fault::stop_at(k)));
            disk.restart();
            let what = || format!("{}, killed before call {k}", scenario.name);
            assert_reads_truth(&disk, &outcome, &what);
            assert_recovers(&disk, |store| outcome.allows_after_kill(store), &what);
        }
    }
}

#[test]
fn a_kill_within_any_call_leaves_the_state_before_or_after() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() {
            let (disk, outcome) = scenario.run(Some(Fault::tear_at(k)));
            disk.restart();
            let what = || format!("{}, killed within call {k}", scenario.name);
            assert_reads_truth(&disk, &outcome, &what);
            assert_recovers(&disk, |store| outcome.allows_after_kill(store), &what);
        }
    }
}

#[test]
fn a_power_cut_at_any_call_may_lose_any_class_of_unsynced_writes() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() + 1 {
            let (disk, outcome) = scenario.run(Some(Fault::tear_at(k)));
            // Only the classes that have something unsynced at this moment make a difference.
            let mut present = std::collections::BTreeSet::new();
            disk.deep_clone().power_cut(|unsynced| !present.insert(unsynced.class));
            let present: Vec<Class> = present.into_iter().collect();
            for subset in 0_u32..1 << present.len() {
                let lost: Vec<Class> = present
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| subset >> i & 1 == 1)
                    .map(|(_, &class)| class)
                    .collect();
                let disk = disk.deep_clone();
                disk.power_cut(|unsynced| lost.contains(&unsynced.class));
                let what = || format!("{}, power cut at call {k}, lost: {lost:?}", scenario.name);
                assert_reads_truth(&disk, &outcome, &what);
                assert_recovers(&disk, |store| outcome.allows_after_power_cut(store), &what);
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_call_may_lose_any_single_writes() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() + 1 {
            let (disk, outcome) = scenario.run(Some(Fault::stop_at(k)));
            for seed in 0..24 {
                let mut random = Random::new(seed * 1000 + k);
                let odds = 2 + seed % 3;
                let disk = disk.deep_clone();
                disk.power_cut(|_| random.one_in(odds));
                let what = || format!("{}, power cut at call {k}, seed {seed}", scenario.name);
                assert_reads_truth(&disk, &outcome, &what);
                assert_recovers(&disk, |store| outcome.allows_after_power_cut(store), &what);
            }
        }
    }
}

#[test]
fn a_crash_while_recovering_is_recovered_from() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() {
            let (disk, outcome) = scenario.run(Some(Fault::stop_at(k)));
            disk.restart();
            let untouched = disk.fork();
            if crash::open_writable(&disk).is_err() || disk.changes() == 0 {
                continue;
            }
            for again in 1..=disk.changes() {
                let disk = untouched.fork();
                disk.inject(Fault::tear_at(again));
                drop(crash::open_writable(&disk));
                disk.restart();
                assert_recovers(&disk, |store| outcome.allows_after_kill(store), &|| {
                    format!("{}, killed at call {k}, and at call {again} of the recovery", scenario.name)
                });
            }
        }
    }
}

#[test]
fn a_call_that_fails_is_reported_and_the_handle_stays_true() {
    for kind in [IoKind::Other, IoKind::StorageFull] {
        for scenario in scenarios() {
            for k in 1..=scenario.calls() {
                let (disk, outcome, store) = scenario.run_and_keep(Some(Fault::fail_at(k, kind)));
                let what = || format!("{}, call {k} fails with {kind:?}", scenario.name);
                if let Some(error) = &outcome.error {
                    assert!(error.path().is_some(), "{}: no path in: {error}", what());
                    assert_eq!(error.is_storage_full(), kind == IoKind::StorageFull, "{}: {error}", what());
                }
                let Some(store) = store else {
                    assert_recovers(&disk, |store| outcome.allows_after_kill(store), &what);
                    continue;
                };
                // The handle shows the state before or after, or refuses to show anything.
                let shown = outcome.allows_after_kill(&store);
                if let Err(wrong) = &shown {
                    assert!((0..store.len()).all(|index| store.get(index).is_err()), "{}: {wrong}", what());
                }
                // What it takes from here on is there when the store is opened again.
                let new = noise(98, 2, 1, 30);
                let appended = store.append_slices(new.iter().map(Vec::as_slice));
                drop(store);
                let expected = appended.ok().map(|first| {
                    let mut model = shown.unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
                    assert_eq!(first, model.append(&new), "{}", what());
                    model
                });
                match expected {
                    None => {
                        assert_recovers(&disk, |store| outcome.allows_after_kill(store), &what);
                    }
                    Some(model) => {
                        let outcome = Outcome::start(&model);
                        assert_recovers(&disk, |store| outcome.allows_after_kill(store), &what);
                    }
                }
            }
        }
    }
}

/// Six records, of which the last two lie in a chunk of their own, at its start or at the offset where the first chunk ends.
fn in_two_chunks(at_start: bool) -> (MemoryDisk, Model) {
    let (disk, model) = crash::prepare(&CreateOptions::new(), &[Operation::Append(noise(1, 6, 20, 40))]);
    let mut meta = disk.content("meta.zr").unwrap();
    let mut chunk = disk.content("0.zr").unwrap();
    let place = |index: usize| 16 + 16 * index..16 + 16 * index + 4;
    let offset = |meta: &[u8], index| u32::from_le_bytes(meta[place(index)].try_into().unwrap());
    let split = offset(&meta, 4);
    let mut second = chunk.split_off(split as usize);
    if !at_start {
        second.splice(0..0, std::iter::repeat_n(0, split as usize));
    }
    for index in [4, 5] {
        let moved = offset(&meta, index) - if at_start { split } else { 0 };
        meta[place(index)].copy_from_slice(&moved.to_le_bytes());
        meta[16 + 16 * index + 12] = 1;
    }
    meta[6] = 1;
    meta[8..12].copy_from_slice(&(second.len() as u32).to_le_bytes());
    for (name, bytes) in [("meta.zr", &meta), ("0.zr", &chunk), ("1.zr", &second)] {
        disk.put(name, bytes);
    }
    disk.directory().remove("check.zr").unwrap();
    (disk.fork(), model)
}

#[test]
fn a_kill_while_compact_leaves_a_chunk_leaves_it_used_or_gone() {
    let (base, model) = in_two_chunks(true);
    for k in 1.. {
        let disk = base.fork();
        disk.inject(Fault::stop_at(k));
        let done = crash::open_writable(&disk).and_then(|mut store| store.compact()).is_ok();
        disk.restart();
        let store = crash::open_writable(&disk).unwrap();
        model.compare(&store).unwrap_or_else(|wrong| panic!("killed before call {k}: {wrong}"));
        drop(store);
        let is_used = disk.content("meta.zr").unwrap()[6] == 1;
        assert_eq!(disk.content("1.zr").is_some(), is_used, "killed before call {k}");
        if done {
            assert!(!is_used);
            break;
        }
    }
}

#[test]
fn compact_takes_each_record_from_its_own_chunk() {
    for at_start in [true, false] {
        let (disk, mut model) = in_two_chunks(at_start);
        let mut store = crash::open_writable(&disk).unwrap();
        store.delete(&[0]).unwrap();
        model.delete(&[0]);
        store.compact().unwrap();
        model.compare(&store).unwrap();
    }
}

#[test]
fn after_a_failed_sync_no_sync_of_that_handle_succeeds() {
    for k in 1.. {
        let (disk, mut model) =
            crash::prepare(&CreateOptions::new(), &[Operation::Append(noise(1, 3, 5, 9))]);
        let store = crash::open_writable(&disk).unwrap();
        store.append_fixed(b"abcd", 4).unwrap();
        model.append(&[b"abcd".to_vec()]);
        disk.inject(Fault::fail_at(k, IoKind::Other));
        if store.sync().is_ok() {
            assert!(k > 3, "a sync is at least chunk, table and checks");
            break;
        }
        // What the system has dropped is not written by asking again.
        for _ in 0..2 {
            let error = store.sync().unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("open the store anew")), "{error}");
        }
        drop(store);
        let store = crash::open_writable(&disk).unwrap();
        model.compare(&store).unwrap();
        store.sync().unwrap();
    }
}

#[test]
fn a_full_disk_is_an_error_and_what_was_committed_stays() {
    for scenario in scenarios() {
        for k in 1..=scenario.calls() {
            let (disk, outcome) = scenario.run(Some(Fault::full_from(k)));
            if let Some(error) = &outcome.error {
                assert!(error.is_storage_full(), "{}: {error}", scenario.name);
                assert!(error.path().is_some(), "{}: {error}", scenario.name);
                assert!(error.hint().is_some(), "{}: {error}", scenario.name);
            }
            disk.restart();
            assert_recovers(&disk, |store| outcome.allows_after_kill(store), &|| {
                format!("{}, the disk is full from call {k} on", scenario.name)
            });
        }
    }
}

#[test]
fn a_read_that_fails_is_reported_and_harms_nothing() {
    for scenario in scenarios() {
        let (disk, _) = scenario.run(None);
        for k in 1..=disk.reads() {
            let (disk, outcome) = scenario.run(Some(Fault::fail_read_at(k, IoKind::Other)));
            disk.restart();
            assert_recovers(&disk, |store| outcome.allows_after_kill(store), &|| {
                format!("{}, read {k} fails", scenario.name)
            });
        }
    }
}

#[test]
fn a_create_that_is_cut_short_can_be_run_again() {
    for options in [
        CreateOptions::new(),
        CreateOptions::new().codec(Codec::zstd()).format(FormatVersion::V4),
        CreateOptions::new().checks(false),
    ] {
        let disk = MemoryDisk::new();
        drop(options.create_in(disk.directory()).unwrap());
        let calls = disk.changes();
        for k in 1..=calls {
            for lost in 0_u32..1 << Class::ALL.len() {
                let disk = MemoryDisk::new();
                disk.inject(Fault::tear_at(k));
                drop(options.create_in(disk.directory()));
                disk.power_cut(|unsynced| {
                    let class = Class::ALL.iter().position(|class| *class == unsynced.class).unwrap();
                    lost >> class & 1 == 1
                });
                // Either it is there and empty, or it can be made.
                let store = crash::open_writable(&disk)
                    .or_else(|_| options.create_in(disk.directory()))
                    .unwrap_or_else(|error| panic!("cut at call {k}, lost {lost:b}: {error}"));
                Model::default().compare(&store).unwrap();
                store.append_fixed(b"abcd", 2).unwrap();
                assert_eq!(store.get(1).unwrap(), b"cd");
            }
        }
    }
}

#[test]
fn what_a_create_that_was_cut_short_has_left_is_no_part_of_the_next() {
    let schema = loaderx_core::Schema::dense(loaderx_core::DType::U8, &[4]).unwrap();
    let first = CreateOptions::new().codec(Codec::zstd_dict()).dictionary(vec![7; 300]).schema(schema);
    let disk = MemoryDisk::new();
    drop(first.create_in(disk.directory()).unwrap());
    for k in 1..=disk.changes() {
        let disk = MemoryDisk::new();
        disk.inject(Fault::tear_at(k));
        drop(first.create_in(disk.directory()));
        disk.restart();
        let Ok(store) = CreateOptions::new().create_in(disk.directory()) else {
            // It was made to its end.
            assert!(crash::open_writable(&disk).unwrap().schema().is_some(), "cut at call {k}");
            continue;
        };
        store.append_fixed(b"abc", 3).unwrap();
        drop(store);
        let store = crash::open_writable(&disk).unwrap();
        assert_eq!((store.schema(), store.codec()), (None, Codec::Raw), "cut at call {k}");
        assert_eq!(store.stats().unwrap().dictionary_bytes, 0, "cut at call {k}");
        assert_eq!(store.get(0).unwrap(), b"abc");
    }
}
