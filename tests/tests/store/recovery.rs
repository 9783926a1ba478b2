//! What opening for writing does with what a kill or another program has left, and what it keeps of what it cuts off.
#![forbid(unsafe_code)]

use loaderx_core::CreateOptions;
use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_core::{OpenOptions, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

/// Eight records that are synced, and three that a writer has appended and then was killed.
fn killed() -> (MemoryDisk, Model) {
    let records = Random::new(31).records(8, 20, 40);
    let (disk, mut model) = crash::prepare(&CreateOptions::new(), &[Operation::Append(records)]);
    let store = crash::open_writable(&disk).unwrap();
    let more = Random::new(32).records(3, 20, 40);
    store.append_slices(more.iter().map(Vec::as_slice)).unwrap();
    model.append(&more);
    disk.restart();
    drop(store);
    (disk, model)
}

#[test]
fn what_a_killed_writer_has_appended_is_durable_once_the_store_is_opened_for_writing() {
    let (disk, model) = killed();
    let store = crash::open_writable(&disk).unwrap();
    model.compare(&store).unwrap();
    disk.power_cut(|_| true);
    drop(store);
    let store = crash::open_writable(&disk).unwrap();
    model.compare(&store).unwrap();
    // And is not looked at again.
    assert!(store.recovery().is_none());
}

#[test]
fn the_entries_of_records_that_are_cut_off_are_kept_from_the_first_on() {
    let (disk, model) = killed();
    let table = disk.content("meta.zr").unwrap();
    let mut chunk = disk.content("0.zr").unwrap();
    // The second of the three is damaged.
    let at = chunk.len() - model.records[10].len() - 1;
    chunk[at] ^= 1;
    disk.put("0.zr", &chunk);
    let store = crash::open_writable(&disk).unwrap();
    let recovery = store.recovery().unwrap();
    assert_eq!((recovery.truncated_at, recovery.records_lost), (Some(9), 2), "{recovery:?}");
    let aside = disk.content(recovery.aside.as_ref().unwrap()).unwrap();
    assert_eq!(aside, [&table[..16], &table[16 + 16 * 9..16 + 16 * 11]].concat());
    Model { records: model.records[..9].to_vec() }.compare(&store).unwrap();
}

/// Deletes a record as Python does it: the last entry into the hole, then the length.
fn delete_as_python(disk: &MemoryDisk, model: &mut Model, index: usize) {
    let mut meta = disk.content("meta.zr").unwrap();
    let last = model.records.len() - 1;
    meta.copy_within(16 + 16 * last..16 + 16 * (last + 1), 16 + 16 * index);
    meta[12..16].copy_from_slice(&(last as u32).to_le_bytes());
    disk.put("meta.zr", &meta);
    model.delete(&[index as u64]);
}

fn assert_no_alarm(store: &Store, what: &str) {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.faults);
}

#[test]
fn a_record_that_another_program_has_moved_is_no_damage_after_our_next_append() {
    for k in 1.. {
        let records = Random::new(33).records(8, 20, 40);
        let (disk, mut model) = crash::prepare(&CreateOptions::new(), &[Operation::Append(records)]);
        delete_as_python(&disk, &mut model, 2);
        disk.inject(Fault::stop_at(k));
        let appended = crash::open_writable(&disk).and_then(|store| {
            store.append_fixed(b"ours", 4)?;
            store.sync()
        });
        // The power fails there too, and of `check.zr` only the header has arrived.
        for power_cut in [false, true] {
            let disk = disk.deep_clone();
            if power_cut {
                let is_entry = |offset: Option<u64>| offset.is_some_and(|offset| offset >= 128);
                disk.power_cut(|unsynced| unsynced.class == Class::Checks && is_entry(unsynced.offset));
            } else {
                disk.restart();
            }
            let what = format!("stopped at call {k}, power cut: {power_cut}");
            let reader = OpenOptions::new().verify(true).open_in(disk.directory()).unwrap();
            assert_eq!(reader.get(2).unwrap(), model.records[2], "{what}");
            // What our append has lost is the writer's to cut off.
            drop(reader);
            let store = crash::open_writable(&disk).unwrap();
            assert_no_alarm(&store, &what);
            store.append_fixed(b"more", 4).unwrap();
            assert_no_alarm(&store, &what);
        }
        if appended.is_ok() {
            break;
        }
    }
}
