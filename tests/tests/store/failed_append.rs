//! What an append leaves behind that could not be committed: no room, and nothing that passes for a later record.
#![forbid(unsafe_code)]

use std::io::ErrorKind::StorageFull;

use loaderx_core::CreateOptions;
use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

fn prepared() -> (MemoryDisk, Model) {
    let records = Random::new(21).records(6, 20, 40);
    crash::prepare(&CreateOptions::new(), &[Operation::Append(records)])
}

#[test]
fn an_append_that_fails_gives_its_room_back() {
    let mut failed = 0;
    for k in 1.. {
        let (disk, model) = prepared();
        let before = disk.content("0.zr").unwrap();
        let store = crash::open_writable(&disk).unwrap();
        // Two portions: the first is in the file, with its entries, when the second fails.
        let records = vec![vec![5; 1 << 20]; 34];
        disk.inject(Fault::fail_at(k, StorageFull));
        let appended = store.append_slices(records.iter().map(Vec::as_slice));
        if appended.is_ok() {
            break;
        }
        let is_committing = disk.trace().last().is_some_and(|call| call.starts_with("store the word"));
        // Once records may be committed nothing is taken from them.
        if !is_committing {
            assert!(disk.content("0.zr").unwrap() == before, "call {k} fails: {:?}", disk.trace().last());
            failed += 1;
        }
        model.compare(&store).unwrap();
    }
    assert!(failed > 34, "each record is a write, and the entries are more");
}

#[test]
fn a_power_cut_takes_no_record_of_a_failed_append_for_a_later_one() {
    let records = |seed| Random::new(seed).records(6, 30, 30);
    let append = |store: &loaderx_core::Store, records: &[Vec<u8>]| {
        store.append_slices(records.iter().map(Vec::as_slice))
    };
    for k in 1.. {
        let (disk, mut model) = prepared();
        let store = crash::open_writable(&disk).unwrap();
        append(&store, &records(1)).unwrap();
        model.append(&records(1));
        // Six records that are not committed; two that are, and durable; four more at the places of the failed ones.
        disk.inject(Fault::fail_at(k, StorageFull));
        if append(&store, &records(2)).is_ok() {
            assert!(k > 3, "an append is at least bytes, entries and the header");
            break;
        }
        append(&store, &records(3)[..2]).unwrap();
        model.append(&records(3)[..2]);
        store.sync().unwrap();
        let durable = model.records.len();
        append(&store, &records(4)[..4]).unwrap();
        model.append(&records(4)[..4]);
        // The new header is there, and of the bytes, entries and checksums before it any are not.
        for lost in 0..8 {
            let disk = disk.deep_clone();
            let classes = [Class::Chunk, Class::Table, Class::Checks];
            disk.power_cut(|unsynced| {
                classes
                    .iter()
                    .position(|class| *class == unsynced.class)
                    .is_some_and(|at| lost >> at & 1 == 1)
            });
            let store = crash::open_writable(&disk).unwrap();
            let kept = store.len() as usize;
            assert!((durable..=model.records.len()).contains(&kept), "call {k} fails, lost {lost:03b}");
            let expected = Model { records: model.records[..kept].to_vec() };
            expected
                .compare(&store)
                .unwrap_or_else(|wrong| panic!("call {k} fails, lost {lost:03b}: {wrong}"));
        }
    }
}
