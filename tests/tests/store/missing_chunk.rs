//! A chunk file that is not there and in which no record lies, as `repair` leaves a store that has lost one.
#![forbid(unsafe_code)]

use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_core::store::repair_in;
use loaderx_core::{CreateOptions, OpenOptions};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

/// Records in chunk 1 alone, with a hole in front of them; there is no chunk 0.
fn without_chunk_0() -> (MemoryDisk, Model) {
    let records = Random::new(41).records(9, 20, 40);
    let hole = [Operation::Append(records), Operation::Delete(vec![0])];
    let (disk, model) = crash::prepare(&CreateOptions::new(), &hole);
    let mut meta = disk.content("meta.zr").unwrap();
    meta[6] = 1;
    for index in 0..model.records.len() {
        meta[16 + 16 * index + 12] = 1;
    }
    disk.put("meta.zr", &meta);
    disk.put("1.zr", &disk.content("0.zr").unwrap());
    for name in ["0.zr", "check.zr"] {
        disk.directory().remove(name).unwrap();
    }
    (disk.fork(), model)
}

/// Bytes that a step of compact copies, and bytes that it puts through the journal.
const STEPS: [(u64, u64); 4] = [(0, 1 << 20), (0, 50), (1 << 20, 1 << 20), (60, 30)];

#[test]
fn compact_moves_records_into_a_chunk_that_was_lost() {
    for (copied, journaled) in STEPS {
        let (disk, model) = without_chunk_0();
        let mut store = crash::open_writable(&disk).unwrap();
        store.compact_with_steps(copied, journaled, 100).unwrap();
        model.compare(&store).unwrap();
        drop(store);
        let bytes: usize = model.records.iter().map(Vec::len).sum();
        assert_eq!(disk.content("0.zr").unwrap().len(), bytes);
        assert_eq!(disk.content("1.zr"), None);
        model.compare(&crash::open_writable(&disk).unwrap()).unwrap();
    }
}

#[test]
fn compact_into_a_lost_chunk_can_be_stopped_and_lose_its_power_at_any_call() {
    for (copied, journaled) in STEPS {
        let mut done = false;
        for k in 1.. {
            let (disk, model) = without_chunk_0();
            disk.inject(Fault::tear_at(k));
            done |= crash::open_writable(&disk)
                .and_then(|mut store| store.compact_with_steps(copied, journaled, 100))
                .is_ok();
            for lost in 0_u32..1 << Class::ALL.len() {
                let disk = disk.deep_clone();
                if lost == 0 {
                    disk.restart();
                } else {
                    disk.power_cut(|unsynced| {
                        let class = Class::ALL.iter().position(|class| *class == unsynced.class);
                        class.is_some_and(|class| lost >> class & 1 == 1)
                    });
                }
                let what = format!("steps of {copied} and {journaled}, stopped at call {k}, lost {lost:07b}");
                let store = crash::open_writable(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                model.compare(&store).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_chunk_that_is_lost_while_a_journal_waits_for_it_is_named_and_repair_goes_on_without() {
    let (disk, model) = without_chunk_0();
    // The first journal is complete, and nothing of it is done.
    for k in 1..100 {
        let disk = disk.fork();
        disk.inject(Fault::stop_at(k));
        let _ = crash::open_writable(&disk).and_then(|mut store| store.compact_with_steps(0, 1 << 20, 100));
        disk.restart();
        let reads = OpenOptions::new().open_in(disk.directory());
        if !reads.is_err_and(|error| error.hint().is_some_and(|hint| hint.contains("open the store once"))) {
            continue;
        }
        let kept = disk.content("0.zr").unwrap();
        disk.directory().remove("0.zr").unwrap();
        for writable in [false, true] {
            let error = OpenOptions::new().writable(writable).open_in(disk.directory()).unwrap_err();
            assert!(error.is_corrupt(), "{error}");
            let text = error.to_string();
            assert!(text.contains("journal.zr") && text.contains("0.zr"), "{text}");
            assert!(error.hint().is_some_and(|hint| hint.contains("put it back")), "{error}");
        }
        // Put back, all is well.
        let whole = disk.fork();
        whole.put("0.zr", &kept);
        model.compare(&crash::open_writable(&whole).unwrap()).unwrap();
        // Without it the journal is put aside, and the records are where they were.
        let report = repair_in(disk.directory()).unwrap();
        assert_eq!(report.aside, ["journal-refused.zr"], "{report:?}");
        model.compare(&crash::open_writable(&disk).unwrap()).unwrap();
        return;
    }
    panic!("no journal was ever complete");
}
