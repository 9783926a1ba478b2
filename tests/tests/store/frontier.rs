//! Where the next append writes: behind every record and within its chunk's file, whatever the header says, for stores with
//! and without `check.zr`.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::FileExt;

use loaderx_core::format::FormatVersion;
use loaderx_core::format::check::{CheckHeader, SLOT_BYTES};
use loaderx_core::io::Access;
use loaderx_core::io::memory::{Fault, MemoryDisk};
use loaderx_core::store::repair_in;
use loaderx_core::{Codec, CreateOptions, OpenOptions, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

/// What there is of `check.zr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    /// As our writer left it.
    Current,
    /// None, as in a store of Python.
    Missing,
    /// Its header is damaged.
    Damaged,
}

const CHECKS: [Checks; 3] = [Checks::Current, Checks::Missing, Checks::Damaged];

/// As many records, of which a delete has moved the last into the place of the first: none of the last 64 is the one
/// that lies behind all others.
const RECORDS: usize = 79;

/// [`RECORDS`], and what there is of the checks.
fn store(options: &CreateOptions, checks: Checks) -> (MemoryDisk, Model) {
    let records = Random::new(11).records(RECORDS + 1, 30, 90);
    let (disk, model) = crash::prepare(options, &[Operation::Append(records), Operation::Delete(vec![0])]);
    match checks {
        Checks::Current => {}
        Checks::Missing => {
            disk.directory().remove("check.zr").unwrap();
            disk.directory().sync().unwrap();
        }
        Checks::Damaged => change(&disk, "check.zr", |bytes| bytes[..128].fill(0x55)),
    }
    (disk, model)
}

fn options() -> [CreateOptions; 3] {
    let raw = CreateOptions::new();
    [raw.clone(), raw.clone().codec(Codec::zstd()), raw.format(FormatVersion::V4)]
}

fn change(disk: &MemoryDisk, name: &str, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.content(name).unwrap();
    how(&mut bytes);
    disk.put(name, &bytes);
}

fn set_frontier(disk: &MemoryDisk, chunk: u16, offset: u32) {
    change(disk, "meta.zr", |bytes| {
        bytes[6..8].copy_from_slice(&chunk.to_le_bytes());
        bytes[8..12].copy_from_slice(&offset.to_le_bytes());
    });
}

/// Where the frontier is too near by one byte.
fn too_near(disk: &MemoryDisk) -> u32 {
    u32::try_from(chunk_bytes(disk) - 1).unwrap()
}

fn set_place(disk: &MemoryDisk, index: usize, chunk: u16, offset: u32) {
    change(disk, "meta.zr", |bytes| {
        let entry = &mut bytes[16 + 16 * index..][..16];
        entry[..4].copy_from_slice(&offset.to_le_bytes());
        entry[12..14].copy_from_slice(&chunk.to_le_bytes());
    });
}

fn chunk_bytes(disk: &MemoryDisk) -> usize {
    let names = disk.file_names();
    let chunks = names.iter().filter(|name| name.as_bytes()[0].is_ascii_digit());
    chunks.map(|name| disk.content(name).unwrap().len()).sum()
}

/// Opens for writing, appends, and finds every record of `model` and the new one, also after opening again.
fn takes_an_append(disk: &MemoryDisk, mut model: Model, what: &dyn Fn() -> String) {
    let before = chunk_bytes(disk);
    let store = crash::open_writable(disk).unwrap_or_else(|error| panic!("{}: {error}", what()));
    let new = vec![Random::new(12).record(50)];
    let first = store.append_slices(new.iter().map(Vec::as_slice));
    let first = first.unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert_eq!(first, model.append(&new), "{}", what());
    model.compare(&store).unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
    drop(store);
    let after = chunk_bytes(disk);
    assert!(after <= before + 50, "{}: 50 bytes made {before} bytes of chunks {after}", what());
    let store = crash::open_writable(disk).unwrap_or_else(|error| panic!("{}: again: {error}", what()));
    model.compare(&store).unwrap_or_else(|wrong| panic!("{}: again: {wrong}", what()));
}

#[test]
fn an_append_overwrites_no_record_and_leaves_no_gap_wherever_the_header_says_it_begins() {
    for options in options() {
        for checks in CHECKS {
            let size = chunk_bytes(&store(&options, checks).0) as u32;
            for offset in [0, 1, size / 2, size - 1, size + 1, size + 5000, 0xfc00_0117, u32::MAX] {
                for chunk in [0, 1, 7, 4095] {
                    let (disk, model) = store(&options, checks);
                    set_frontier(&disk, chunk, offset);
                    takes_an_append(&disk, model, &|| format!("{checks:?}, byte {offset} of chunk {chunk}"));
                }
            }
        }
    }
}

#[test]
fn an_entry_of_a_chunk_that_cannot_be_moves_no_append_past_the_file_s_end() {
    for options in options() {
        for checks in CHECKS {
            for chunk in [1, 4094, 4095, 4096, 10_240, u16::MAX - 1, u16::MAX] {
                for offset in [0, 0xe4e4_e4e4] {
                    let (disk, model) = store(&options, checks);
                    set_frontier(&disk, 0, 0xfc00_0117);
                    set_place(&disk, 3, chunk, offset);
                    let before = chunk_bytes(&disk);
                    let what = format!("{checks:?}, record 3 at byte {offset} of chunk {chunk}");
                    match crash::open_writable(&disk) {
                        Ok(store) => {
                            let first = store.append_fixed(b"appended", 8).unwrap();
                            assert_eq!(store.get(first).unwrap(), b"appended", "{what}");
                            for (index, record) in model.records.iter().enumerate() {
                                let read = store.get(index as u64);
                                assert!((index == 3 && read.is_err()) || read.unwrap() == *record, "{what}");
                            }
                        }
                        // The chunk is the last that the format has.
                        Err(error) => {
                            assert!(matches!(chunk, 4095 | u16::MAX), "{what}: {error}");
                            assert_eq!(error.record(), Some(3), "{error}");
                            assert!(error.to_string().contains(&chunk.to_string()), "{error}");
                            assert!(error.hint().is_some_and(|hint| hint.contains("repair()")), "{error}");
                        }
                    }
                    assert!(chunk_bytes(&disk) <= before + 8, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_frontier_that_was_not_proven_is_vouched_for_by_no_interrupted_opening() {
    for options in options() {
        for checks in CHECKS {
            for k in 1.. {
                let (disk, model) = store(&options, checks);
                set_frontier(&disk, 0, too_near(&disk));
                disk.inject(Fault::stop_at(k));
                let opened = crash::open_writable(&disk).is_ok();
                disk.restart();
                takes_an_append(&disk, model, &|| format!("{checks:?}, stopped at call {k}"));
                if opened {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_repair_that_is_cut_short_leaves_no_frontier_that_the_next_writer_trusts() {
    for options in options() {
        for checks in CHECKS {
            for k in 1.. {
                let (disk, mut model) = store(&options, checks);
                set_frontier(&disk, 0, too_near(&disk));
                // An entry that cannot be; the repair takes it out.
                change(&disk, "meta.zr", |bytes| bytes[16 + 16 * 5 + 14] = 9);
                disk.inject(Fault::stop_at(k));
                let repaired = repair_in(disk.directory()).is_ok();
                disk.restart();
                let before = chunk_bytes(&disk);
                let what = format!("{checks:?}, stopped at call {k}");
                let store = crash::open_writable(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                let was_taken_out = store.len() == RECORDS as u64 - 1;
                if was_taken_out {
                    model.delete(&[5]);
                }
                let first = store.append_fixed(b"appended", 8).unwrap();
                assert_eq!(first, model.append(&[b"appended".to_vec()]), "{what}");
                for (index, record) in model.records.iter().enumerate() {
                    let read = store.get(index as u64);
                    let is_the_damaged = index == 5 && !was_taken_out && read.is_err();
                    assert!(is_the_damaged || read.unwrap() == *record, "{what}, record {index}");
                }
                drop(store);
                assert!(chunk_bytes(&disk) <= before + 8, "{what}");
                if repaired {
                    assert!(was_taken_out, "{what}");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_frontier_behind_what_was_durable_is_not_believed_after_a_kill() {
    for options in options() {
        let (disk, mut model) = store(&options, Checks::Current);
        let mut store = crash::open_writable(&disk).unwrap();
        let new = Random::new(13).records(1, 60, 60);
        store.append_slices(new.iter().map(Vec::as_slice)).unwrap();
        model.append(&new);
        store.delete(&[1]).unwrap();
        model.delete(&[1]);
        disk.restart();
        drop(store);
        set_frontier(&disk, 0, too_near(&disk));
        takes_an_append(&disk, model, &|| "a killed writer".to_owned());
    }
}

#[test]
fn the_last_records_are_not_overwritten_whatever_the_checks_vouch_for() {
    for options in options() {
        let (disk, model) = store(&options, Checks::Current);
        let slots = *disk.content("check.zr").unwrap().first_chunk::<{ 2 * SLOT_BYTES }>().unwrap();
        let newest = CheckHeader::newest(&slots).unwrap();
        let forged = CheckHeader { frontier: (0, 40), ..newest };
        set_frontier(&disk, 0, 40);
        change(&disk, "check.zr", |bytes| {
            bytes[..2 * SLOT_BYTES].copy_from_slice(&[forged.encode(), forged.encode()].concat());
        });
        takes_an_append(&disk, model, &|| "forged checks".to_owned());
    }
}

#[test]
fn a_record_whose_bytes_were_cut_off_is_not_read_from_what_is_appended_later() {
    for options in options() {
        for checks in CHECKS {
            let (disk, model) = store(&options, checks);
            change(&disk, "0.zr", |bytes| bytes.truncate(bytes.len() - 200));
            for _ in 0..2 {
                let store = crash::open_writable(&disk).unwrap();
                store.append_fixed(&[7; 500], 500).unwrap();
                drop(store);
                // No checksums are asked: the files alone count.
                let store = OpenOptions::new().open_in(disk.directory()).unwrap();
                let mut lost = 0;
                for (index, record) in model.records.iter().enumerate() {
                    match store.get(index as u64) {
                        Ok(read) => assert_eq!(read, *record, "{checks:?}, record {index}"),
                        Err(error) => {
                            assert!(error.is_corrupt(), "{error}");
                            lost += 1;
                        }
                    }
                }
                assert!(lost > 1, "{checks:?}");
            }
        }
    }
}

#[test]
fn a_record_that_ends_with_its_chunk_sends_the_next_append_to_another() {
    for end in [1_u64 << 32, (1 << 32) - 1] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let store = CreateOptions::new().create(&path).unwrap();
        store.append_fixed(&[1; 100], 50).unwrap();
        drop(store);
        fs::remove_file(path.join("check.zr")).unwrap();
        let write = |name: &str, bytes: &[u8], offset: u64| {
            let file = fs::File::options().write(true).open(path.join(name)).unwrap();
            file.write_all_at(bytes, offset).unwrap();
        };
        // As Python makes its chunks; the second record is the last bytes of one.
        write("0.zr", &[2; 50], end - 50);
        let file = fs::File::options().write(true).open(path.join("0.zr")).unwrap();
        file.set_len(1 << 32).unwrap();
        write("meta.zr", &u32::try_from(end - 50).unwrap().to_le_bytes(), 16 + 16);
        let store = Store::open_writable(&path).unwrap();
        store.append_fixed(&[3; 50], 50).unwrap();
        for (index, byte) in [1, 2, 3].into_iter().enumerate() {
            assert_eq!(store.get(index as u64).unwrap(), [byte; 50]);
        }
        drop(store);
        assert_eq!(fs::metadata(path.join("0.zr")).unwrap().len(), 1 << 32);
        assert_eq!(fs::metadata(path.join("1.zr")).unwrap().len(), 50);
    }
}

#[test]
fn opening_for_writing_reads_as_much_of_a_large_store_as_of_a_small_one() {
    let reads = |records: usize, checks: Checks| {
        let append = Operation::Append(vec![vec![7; 4]; records]);
        let (disk, _) = crash::prepare(&CreateOptions::new(), &[append]);
        if checks == Checks::Missing {
            disk.directory().remove("check.zr").unwrap();
        }
        disk.restart();
        drop(crash::open_writable(&disk).unwrap());
        disk.reads()
    };
    assert_eq!(reads(100, Checks::Current), reads(30_000, Checks::Current));
    // The meter does tell: of a store of another program the whole table is read.
    assert!(reads(100, Checks::Missing) < reads(30_000, Checks::Missing));
}

#[test]
fn a_chunk_that_an_append_has_made_is_there_after_a_sync() {
    let (disk, _) = crash::prepare(&CreateOptions::new(), &[]);
    // As in a store that was copied without its empty files.
    disk.directory().remove("0.zr").unwrap();
    disk.directory().sync().unwrap();
    let store = crash::open_writable(&disk).unwrap();
    store.append_fixed(b"abcd", 2).unwrap();
    store.sync().unwrap();
    disk.power_cut(|_| true);
    drop(store);
    let model = Model { records: vec![b"ab".to_vec(), b"cd".to_vec()] };
    takes_an_append(&disk, model, &|| "after a power cut".to_owned());
}

/// Appends a record as Python does it: bytes, entry, header, and nothing synced.
fn append_as_python(disk: &MemoryDisk, record: &[u8]) {
    let open = |name| disk.directory().open(name, Access::Write).unwrap();
    let (chunk, meta) = (open("0.zr"), open("meta.zr"));
    let length = u32::from_le_bytes(disk.content("meta.zr").unwrap()[12..16].try_into().unwrap());
    let (offset, bytes) = (u32::try_from(chunk.size().unwrap()).unwrap(), record.len() as u32);
    chunk.write_all_at(record, u64::from(offset)).unwrap();
    let entry = [offset, bytes, bytes, 0].map(u32::to_le_bytes).concat();
    meta.write_all_at(&entry, 16 + 16 * u64::from(length)).unwrap();
    meta.write_all_at(&[offset + bytes, length + 1].map(u32::to_le_bytes).concat(), 8).unwrap();
}

#[test]
fn a_repair_that_is_cut_short_calls_no_record_damaged_that_another_program_has_moved() {
    for k in 1.. {
        let (disk, mut model) = store(&CreateOptions::new(), Checks::Current);
        // As Python deletes: the last entry into the hole, then the length.
        change(&disk, "meta.zr", |bytes| {
            bytes.copy_within(16 + 16 * (RECORDS - 1)..16 + 16 * RECORDS, 16 + 16 * 2);
            bytes[12..16].copy_from_slice(&(RECORDS as u32 - 1).to_le_bytes());
            bytes[16 + 16 * 5 + 14] = 9;
        });
        model.delete(&[2]);
        disk.inject(Fault::stop_at(k));
        let repaired = repair_in(disk.directory()).is_ok();
        disk.restart();
        drop(crash::open_writable(&disk).unwrap());
        let store = OpenOptions::new().verify(true).open_in(disk.directory()).unwrap();
        if store.len() < model.records.len() as u64 {
            model.delete(&[5]);
        }
        for (index, record) in model.records.iter().enumerate() {
            match store.get(index as u64) {
                Ok(read) => assert_eq!(read, *record, "stopped at call {k}, record {index}"),
                Err(error) => assert!(index == 5 && !repaired, "stopped at call {k}: {error}"),
            }
        }
        if repaired {
            break;
        }
    }
}

#[test]
fn what_another_program_appends_after_our_delete_is_kept() {
    let (disk, mut model) = store(&CreateOptions::new(), Checks::Current);
    let mut ours = crash::open_writable(&disk).unwrap();
    ours.delete(&[1, 2]).unwrap();
    model.delete(&[1, 2]);
    drop(ours);
    for byte in [1, 2] {
        append_as_python(&disk, &[byte; 20]);
        model.append(&[vec![byte; 20]]);
    }
    disk.restart();
    takes_an_append(&disk, model, &|| "after a delete".to_owned());
}

#[test]
fn what_another_program_has_appended_is_durable_with_our_next_sync() {
    for append in [true, false] {
        let (disk, mut model) = store(&CreateOptions::new(), Checks::Current);
        let foreign = vec![b'f'; 20];
        append_as_python(&disk, &foreign);
        model.append(&[foreign]);
        let store = crash::open_writable(&disk).unwrap();
        if append {
            store.append_fixed(b"ours", 4).unwrap();
            model.append(&[b"ours".to_vec()]);
        }
        store.sync().unwrap();
        disk.power_cut(|_| true);
        drop(store);
        takes_an_append(&disk, model, &|| format!("after a power cut, append: {append}"));
    }
}
