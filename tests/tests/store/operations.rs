//! Delete and compact against a plain vector, alone and interrupted at every call.
#![forbid(unsafe_code)]

use std::io::ErrorKind::{Other, StorageFull};

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_core::{Codec, CreateOptions, ErrorKind, Literals, OpenOptions, Result, Store};
use proptest::prelude::*;

type Model = Vec<Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Vec<u8>>),
    Delete(Vec<usize>),
    Compact { direct: u64, journal: u64, records: usize },
    Sync,
    Reopen,
}

fn steps(smallest: usize) -> impl Strategy<Value = Vec<Step>> {
    let record = prop_oneof![
        proptest::collection::vec(any::<u8>(), smallest..60),
        (smallest..400, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ];
    let step = prop_oneof![
        4 => proptest::collection::vec(record, 1..8).prop_map(Step::Append),
        3 => proptest::collection::vec(any::<usize>(), 1..5).prop_map(Step::Delete),
        2 => (0_u64..300, 0_u64..300, 1_usize..5)
            .prop_map(|(direct, journal, records)| Step::Compact { direct, journal, records }),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..14)
}

/// Does to the model what `Store::delete` does.
fn delete(model: &mut Model, picks: &[usize]) -> Vec<u64> {
    if model.is_empty() {
        return Vec::new();
    }
    let indices: std::collections::BTreeSet<usize> = picks.iter().map(|pick| pick % model.len()).collect();
    for &index in indices.iter().rev() {
        model.swap_remove(index);
    }
    indices.iter().map(|&index| index as u64).collect()
}

fn content(store: &Store) -> Model {
    (0..store.len()).map(|index| store.get(index).unwrap()).collect()
}

fn open(disk: &MemoryDisk) -> Result<Store> {
    OpenOptions::new().writable(true).verify(true).open_in(disk.directory())
}

fn codec(number: u8) -> Codec {
    let dictionary = Codec::zstd_dict().with_level(3);
    let raw_literals = [Codec::zstd(), dictionary].map(|codec| codec.with_literals(Literals::Raw));
    [Codec::Raw, Codec::zstd(), dictionary, raw_literals[0], raw_literals[1]][usize::from(number % 5)]
}

fn create(disk: &MemoryDisk, which: u8, version: FormatVersion) -> Store {
    CreateOptions::new()
        .codec(codec(which))
        .dictionary(vec![7; 200])
        .format(version)
        .create_in(disk.directory())
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_a_vector(which in any::<u8>(), v4 in any::<bool>(), steps in any::<bool>().prop_flat_map(|v4| steps(usize::from(!v4)))) {
        let smallest_is_zero = steps.iter().any(|step| matches!(step, Step::Append(records) if records.iter().any(Vec::is_empty)));
        let version = if v4 || smallest_is_zero { FormatVersion::V4 } else { FormatVersion::V3 };
        let disk = MemoryDisk::new();
        let mut store = create(&disk, which, version);
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Append(records) => {
                    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
                    model.extend(records);
                }
                Step::Delete(picks) => {
                    let indices = delete(&mut model, &picks);
                    prop_assert_eq!(store.delete(&indices).unwrap(), indices.len() as u64);
                }
                Step::Compact { direct, journal, records } => {
                    let report = store.compact_with_steps(direct, journal, records).unwrap();
                    let stats = store.stats().unwrap();
                    prop_assert_eq!(report.bytes_after, stats.stored_bytes);
                    prop_assert_eq!(stats.garbage_bytes, 0);
                }
                Step::Sync => store.sync().unwrap(),
                Step::Reopen => {
                    drop(store);
                    store = open(&disk).unwrap();
                    prop_assert!(store.recovery().is_none());
                }
            }
            prop_assert_eq!(content(&store), model.clone());
        }
        let report = store.verify().unwrap();
        prop_assert!(report.is_sound(), "{:?}", report.faults);
        prop_assert_eq!(report.checked, model.len() as u64);
        prop_assert!(!disk.file_names().contains(&"journal.zr".to_owned()));
    }
}

/// What is deleted, and the limits of the compaction's steps: bytes copied, bytes through the journal, records.
type Shape = (&'static [u64], (u64, u64, usize));

/// Small steps of both kinds; all records in one step, over their own old places; into a gap wide enough to copy.
const SHAPES: [Shape; 3] =
    [(&[0, 4], (50, 150, 3)), (&[0, 4], (10_000, 10_000, 100)), (&[0, 1, 2], (10_000, 60, 2))];

/// Two appends, a sync, an append that is not synced, a delete, a compaction in small steps, an append: what the store
/// holds after each.
fn history(store: &mut Store, (holes, (direct, journal, records)): Shape) -> (Vec<Model>, Result<()>) {
    let record = |byte: u8, length: usize| -> Vec<u8> {
        (0..length).map(|i| byte.wrapping_mul(31).wrapping_add(u8::try_from(i % 97).unwrap())).collect()
    };
    let first: Model = (0..6).map(|i| record(i, 40 + usize::from(i) * 13)).collect();
    let second: Model = (6..9).map(|i| record(i, 90)).collect();
    let third: Model = (9..11).map(|i| record(i, 30)).collect();
    let mut states = vec![Model::new()];
    let mut run = || -> Result<()> {
        let append = |store: &Store, states: &mut Vec<Model>, records: &Model| -> Result<()> {
            states.push([states.last().unwrap().clone(), records.clone()].concat());
            store.append_slices(records.iter().map(Vec::as_slice)).map(|_| ())
        };
        append(store, &mut states, &first)?;
        store.sync()?;
        append(store, &mut states, &second)?;
        let mut after = states.last().unwrap().clone();
        for &hole in holes.iter().rev() {
            after.swap_remove(usize::try_from(hole).unwrap());
        }
        states.push(after);
        store.delete(holes)?;
        store.compact_with_steps(direct, journal, records)?;
        append(store, &mut states, &third)?;
        store.sync()
    };
    let result = run();
    (states, result)
}

/// The last states that the store may be in: the newest, or the one before if the last call failed.
fn possible(states: &[Model]) -> &[Model] {
    &states[states.len().saturating_sub(2)..]
}

fn usable(disk: &MemoryDisk, expected: impl Fn(&Model) -> bool, context: &str) {
    let store = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = content(&store);
    assert!(expected(&found), "{context}: {found:?}\n{:?}", store.recovery());
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{context}: {:?}", report.faults);
    // It takes more, and keeps it.
    store.append_slices([b"one more".as_slice()]).unwrap_or_else(|error| panic!("{context}: {error}"));
    store.sync().unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(store);
    disk.power_cut(|_| true);
    let again = content(&open(disk).unwrap());
    assert_eq!(again, [found, vec![b"one more".to_vec()]].concat(), "{context}");
}

fn calls(which: u8, version: FormatVersion, shape: Shape) -> u64 {
    let disk = MemoryDisk::new();
    let mut store = create(&disk, which, version);
    disk.inject(Fault::stop_at(u64::MAX));
    history(&mut store, shape).1.unwrap();
    disk.changes()
}

/// Every call of every shape on a version 3 store of raw records.
fn every_call() -> impl Iterator<Item = (u64, Shape)> {
    SHAPES.into_iter().flat_map(|shape| (1..=calls(0, FormatVersion::V3, shape)).map(move |k| (k, shape)))
}

#[test]
fn a_kill_at_any_call_keeps_every_committed_record() {
    let kinds = [(0, FormatVersion::V3), (1, FormatVersion::V4)];
    for ((which, version), shape) in kinds.into_iter().flat_map(|kind| SHAPES.map(|shape| (kind, shape))) {
        for k in 1..=calls(which, version, shape) {
            for fault in [Fault::stop_at(k), Fault::tear_at(k)] {
                let disk = MemoryDisk::new();
                let mut store = create(&disk, which, version);
                disk.inject(fault);
                let (states, result) = history(&mut store, shape);
                assert!(result.is_err());
                drop(store);
                disk.restart();
                usable(&disk, |found| possible(&states).contains(found), &format!("{fault:?}"));
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_call_loses_at_most_what_was_not_synced() {
    for (k, shape) in every_call() {
        let original = MemoryDisk::new();
        let mut store = create(&original, 0, FormatVersion::V3);
        original.inject(Fault::stop_at(k));
        let (states, _) = history(&mut store, shape);
        let trace = original.trace();
        // What a sync had returned for: six records; everything, once a delete has returned.
        let floor = match states.len() {
            0..=2 => 0,
            3 | 4 => 1,
            _ => states.len() - 2,
        };
        let classes: Vec<Class> = Class::ALL.into_iter().collect();
        for mask in 0..1_u32 << classes.len() {
            let disk = original.deep_clone();
            disk.power_cut(|unsynced| {
                classes
                    .iter()
                    .position(|class| *class == unsynced.class)
                    .is_some_and(|at| mask >> at & 1 == 1)
            });
            let context = format!("stopped at {k} ({:?}), lost {mask:07b}", trace.last());
            // Any prefix of an unsynced append is what recovery may keep.
            let expected = |found: &Model| {
                states[floor..].iter().any(|state| found == state)
                    || ((3..=4).contains(&states.len()) && states[2].starts_with(found) && found.len() >= 6)
                    || (states.len() == 2 && states[1].starts_with(found))
                    || (states.len() == 5 && states[4].starts_with(found) && found.len() >= states[3].len())
            };
            usable(&disk, expected, &context);
        }
    }
}

#[test]
fn a_failed_call_is_an_error_and_leaves_a_store_that_goes_on() {
    for kind in [Other, StorageFull] {
        for (k, shape) in every_call() {
            let disk = MemoryDisk::new();
            let mut store = create(&disk, 0, FormatVersion::V3);
            disk.inject(Fault::fail_at(k, kind));
            let (states, result) = history(&mut store, shape);
            let error = result.unwrap_err();
            assert!(error.path().is_some(), "{error}");
            assert_eq!(error.is_storage_full(), kind == StorageFull, "{error}");
            drop(store);
            disk.restart();
            usable(&disk, |found| possible(&states).contains(found), &format!("failed at {k}: {error}"));
        }
    }
}

#[test]
fn a_failed_append_does_not_stop_the_next_on_the_same_handle() {
    let disk = MemoryDisk::new();
    let store = create(&disk, 0, FormatVersion::V3);
    store.append_fixed(b"aaaabbbb", 4).unwrap();
    for k in 1..6 {
        let before = content(&store);
        disk.inject(Fault::fail_at(k, StorageFull));
        match store.append_fixed(b"cccc", 4) {
            Err(error) => assert!(error.is_storage_full(), "{error}"),
            Ok(_) => break,
        }
        assert_eq!(content(&store), before);
        store.append_fixed(b"dddd", 4).unwrap();
        assert_eq!(content(&store), [before, vec![b"dddd".to_vec()]].concat());
    }
}

#[test]
fn delete_and_compact_want_the_store_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), CreateOptions::new()).unwrap();
    store.append_fixed(b"abcdef", 1).unwrap();
    let reader = Store::open(dir.path()).unwrap();
    assert!(store.delete(&[0]).unwrap_err().is_locked());
    assert!(store.compact().unwrap_err().is_locked());
    assert_eq!(store.delete(&[6]).unwrap_err().kind(), ErrorKind::OutOfRange);
    drop(reader);
    assert_eq!(store.delete(&[1, 1]).unwrap(), 1);
    assert_eq!(content(&store), [b"a", b"f", b"c", b"d", b"e"]);
    let report = store.compact().unwrap();
    assert_eq!((report.bytes_before, report.bytes_after), (6, 5));
    assert_eq!(std::fs::metadata(dir.path().join("0.zr")).unwrap().len(), 5);
    // Readers come in again.
    assert_eq!(content(&Store::open(dir.path()).unwrap()), content(&store));
    store.append_fixed(b"g", 1).unwrap();
    assert_eq!(content(&store).concat(), b"afcdeg");
}

#[test]
fn records_that_share_their_bytes_move_once_and_stay_twins() {
    // Over bytes that are still needed, through the journal; and into free space.
    for (holes, copied) in [(vec![0], 0), (vec![0, 1, 2], 1 << 20)] {
        let disk = MemoryDisk::new();
        let mut store = create(&disk, 0, FormatVersion::V3);
        let records: Model = (0..8).map(|i| vec![i; 50 + usize::from(i)]).collect();
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        store.delete(&holes).unwrap();
        let mut expected = content(&store);
        drop(store);
        // A delete of Python that was killed before it had changed the length leaves the last record twice.
        let mut meta = disk.content("meta.zr").unwrap();
        let last = expected.len() - 1;
        meta.copy_within(16 + 16 * last..16 + 16 * (last + 1), 16 + 16);
        disk.put("meta.zr", &meta);
        expected[1] = expected[last].clone();
        let mut store = OpenOptions::new().writable(true).open_in(disk.directory()).unwrap();
        store.compact_with_steps(copied, 1 << 20, 100).unwrap();
        assert_eq!(content(&store), expected);
        let distinct: usize =
            expected.iter().enumerate().filter(|&(i, _)| i != 1).map(|(_, record)| record.len()).sum();
        assert_eq!(disk.content("0.zr").unwrap().len(), distinct);
    }
}

/// Changes the table entry of a record: its offset and its lengths, raw.
fn set_place(disk: &MemoryDisk, index: usize, offset: u32, length: u32) {
    let mut meta = disk.content("meta.zr").unwrap();
    for (field, value) in [offset, length, length].into_iter().enumerate() {
        meta[16 + 16 * index + 4 * field..][..4].copy_from_slice(&value.to_le_bytes());
    }
    disk.put("meta.zr", &meta);
}

#[test]
fn compact_refuses_records_that_share_some_of_their_bytes_and_changes_nothing() {
    // Over the end of the one before, within it, from its start on, and over all of several.
    for (offset, length) in [(90, 20), (65, 5), (50, 10), (50, 150)] {
        let disk = MemoryDisk::new();
        let mut store = create(&disk, 0, FormatVersion::V3);
        let records: Model = (1..9).map(|byte| vec![byte; 50]).collect();
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        store.delete(&[0]).unwrap();
        drop(store);
        set_place(&disk, 2, offset, length);
        let mut store = OpenOptions::new().writable(true).open_in(disk.directory()).unwrap();
        let before = (disk.content("0.zr"), disk.content("meta.zr"));
        let error = store.compact().unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        assert!(error.to_string().contains("overlaps another record"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("nothing was changed")), "{error}");
        assert!((disk.content("0.zr"), disk.content("meta.zr")) == before, "{offset}, {length}");
        // The handle goes on.
        store.append_fixed(b"more", 4).unwrap();
        assert_eq!(store.get(1).unwrap(), records[1]);
    }
}

#[test]
fn compact_gives_no_checksum_to_a_record_that_has_none() {
    let records: Model = (1..9).map(|byte| vec![byte; 50]).collect();
    for copied in [0, 1 << 20] {
        let disk = MemoryDisk::new();
        let store = create(&disk, 0, FormatVersion::V3);
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        drop(store);
        // As a store of Python; then two records of ours, which have one.
        disk.directory().remove("check.zr").unwrap();
        let mut store = OpenOptions::new().writable(true).open_in(disk.directory()).unwrap();
        store.append_fixed(&[77; 100], 50).unwrap();
        store.delete(&[0, 1]).unwrap();
        let expected = content(&store);
        store.compact_with_steps(copied, 1 << 20, 100).unwrap();
        assert_eq!(content(&store), expected);
        drop(store);
        let store = OpenOptions::new().verify(true).open_in(disk.directory()).unwrap();
        assert_eq!(content(&store), expected);
        let report = store.verify().unwrap();
        assert_eq!((report.checked, report.unchecked, report.fault_count), (2, 6, 0), "{:?}", report.faults);
    }
}
