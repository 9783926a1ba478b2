//! Damage is found, listed and put aside; a wrong dictionary is called by its name.
#![forbid(unsafe_code)]

use loaderx_core::io::memory::MemoryDisk;
use loaderx_core::store::{FaultKind, Training, repair_in, train_dictionary};
use loaderx_core::{Codec, CreateOptions, DType, ErrorKind, OpenOptions, Schema, Store};
use loaderx_tests::random::Random;

fn records() -> Vec<Vec<u8>> {
    (0..20_u8).map(|i| (0..50 + i).map(|k| i.wrapping_mul(k)).collect()).collect()
}

fn filled(disk: &MemoryDisk, options: &CreateOptions) -> Store {
    let store = options.create_in(disk.directory()).unwrap();
    store.append_slices(records().iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    store
}

fn flip(disk: &MemoryDisk, file: &str, at: usize) {
    let mut bytes = disk.content(file).unwrap();
    bytes[at] ^= 0x10;
    disk.put(file, &bytes);
}

fn reader(disk: &MemoryDisk, verify: bool) -> Store {
    OpenOptions::new().verify(verify).open_in(disk.directory()).unwrap()
}

#[test]
fn a_flipped_bit_of_a_raw_record_is_found_by_a_checked_read_and_by_verify() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    flip(&disk, "0.zr", 60);
    let error = reader(&disk, true).get(1).unwrap_err();
    assert!(error.is_corrupt());
    assert_eq!((error.record(), error.chunk(), error.offset()), (Some(1), Some(0), Some(50)));
    assert_eq!(reader(&disk, true).get(2).unwrap(), records()[2]);

    let report = reader(&disk, false).verify().unwrap();
    assert_eq!((report.records, report.checked, report.unchecked, report.fault_count), (20, 19, 0, 1));
    let fault = &report.faults[0];
    assert_eq!((fault.kind, fault.record, fault.offset), (FaultKind::Checksum, Some(1), Some(50)));
    assert_eq!(fault.file, "0.zr");
}

#[test]
fn compressed_records_are_checked_on_every_read() {
    let disk = MemoryDisk::new();
    let long = vec![9_u8; 3000];
    let store = CreateOptions::new().codec(Codec::zstd()).create_in(disk.directory()).unwrap();
    store.append_slices([long.as_slice()]).unwrap();
    drop(store);
    let size = disk.content("0.zr").unwrap().len();
    for at in 0..size {
        flip(&disk, "0.zr", at);
        match reader(&disk, false).get(0) {
            Ok(read) => assert_eq!(read, long, "byte {at}"),
            Err(error) => assert_eq!(error.record(), Some(0), "{error}"),
        }
        flip(&disk, "0.zr", at);
    }
}

#[test]
fn a_truncated_chunk_costs_the_records_at_its_end() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    let bytes = disk.content("0.zr").unwrap();
    disk.put("0.zr", &bytes[..bytes.len() - 1]);
    let store = reader(&disk, false);
    let error = store.get(19).unwrap_err();
    assert!(error.is_corrupt(), "{error}");
    assert!(error.to_string().contains("1190"), "the message names the length expected: {error}");
    assert_eq!(store.get(18).unwrap(), records()[18]);
    assert_eq!(store.verify().unwrap().faults[0].kind, FaultKind::CutShort);
}

#[test]
fn every_kind_of_damage_is_repaired_and_what_was_damaged_is_put_aside() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    flip(&disk, "0.zr", 60); // record 1
    flip(&disk, "meta.zr", 16 + 3 * 16 + 14); // record 3: an unknown codec
    let mut meta = disk.content("meta.zr").unwrap();
    meta[16 + 5 * 16 + 12] = 9; // record 5: a chunk that is not there
    disk.put("meta.zr", &meta);
    let before = reader(&disk, false).verify().unwrap();
    let kinds: Vec<_> = before.faults.iter().map(|fault| (fault.record, fault.kind)).collect();
    assert_eq!(
        kinds,
        [(Some(1), FaultKind::Checksum), (Some(3), FaultKind::Entry), (Some(5), FaultKind::MissingChunk)]
    );

    let report = repair_in(disk.directory()).unwrap();
    assert_eq!((report.records, &report.removed[..]), (17, &[1, 3, 5][..]));
    assert_eq!(report.aside, ["lost-0.zr", "lost-0.bin"]);
    let aside = disk.content("lost-0.bin").unwrap();
    assert_eq!(aside[..16], [1_u64.to_le_bytes(), 51_u64.to_le_bytes()].concat());
    assert_eq!(aside[16] & !0x10, records()[1][0] & !0x10);

    let store = reader(&disk, true);
    assert!(store.verify().unwrap().is_sound());
    let mut model = records();
    for index in [5, 3, 1] {
        model.swap_remove(index);
    }
    let all: Vec<u64> = (0..17).collect();
    assert_eq!(store.gather_packed(&all).unwrap().0, model.concat());
    // Once is enough.
    drop(store);
    let again = repair_in(disk.directory()).unwrap();
    assert!(again.removed.is_empty() && again.aside.is_empty());
}

#[test]
fn a_table_that_was_cut_keeps_the_records_whose_entries_are_left() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    let meta = disk.content("meta.zr").unwrap();
    disk.put("meta.zr", &meta[..16 + 7 * 16 + 3]);
    for writable in [false, true] {
        let error = OpenOptions::new().writable(writable).open_in(disk.directory()).unwrap_err();
        assert!(error.is_corrupt() && error.hint().is_some(), "{error}");
    }
    let report = repair_in(disk.directory()).unwrap();
    assert_eq!((report.records, report.entries_lost), (7, 13));
    assert_eq!(reader(&disk, true).gather_packed(&[6]).unwrap().0, records()[6]);
    // New records come after the bytes of those that were lost.
    let store = OpenOptions::new().writable(true).open_in(disk.directory()).unwrap();
    store.append_slices([b"new".as_slice()]).unwrap();
    assert_eq!(store.get(7).unwrap(), b"new");
    assert_eq!(store.get(6).unwrap(), records()[6]);
}

#[test]
fn damaged_checks_cost_the_checks_and_not_the_store() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    for at in 0..128 {
        let mut bytes = disk.content("check.zr").unwrap();
        bytes[at] ^= 0xff;
        disk.put("check.zr", &bytes);
    }
    let store = reader(&disk, true);
    let report = store.verify().unwrap();
    assert_eq!(report.faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), [FaultKind::Checks]);
    drop(store);
    let report = repair_in(disk.directory()).unwrap();
    assert_eq!((report.records, report.removed.len()), (20, 0));
    assert!(reader(&disk, true).verify().unwrap().is_sound());
}

#[test]
fn records_that_another_program_moved_are_unchecked_and_no_false_alarm() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    // What Python does to delete record 4: the last entry over it, and a shorter length.
    let mut meta = disk.content("meta.zr").unwrap();
    meta.copy_within(16 + 19 * 16..16 + 20 * 16, 16 + 4 * 16);
    meta[12] = 19;
    disk.put("meta.zr", &meta);
    let store = OpenOptions::new().writable(true).verify(true).open_in(disk.directory()).unwrap();
    assert!(store.recovery().is_none());
    assert_eq!(store.get(4).unwrap(), records()[19]);
    let report = store.verify().unwrap();
    assert_eq!((report.checked, report.unchecked, report.fault_count), (18, 1, 0));
    drop(store);
    assert_eq!(repair_in(disk.directory()).unwrap().sealed, 1);
    assert_eq!(reader(&disk, true).verify().unwrap().checked, 19);
}

#[test]
fn a_record_of_another_length_than_the_schema_s_is_a_fault_and_no_damage() {
    let of = |schema: Schema| CreateOptions::new().schema(schema);
    for (schema, right, wrong) in
        [(Schema::dense(DType::U8, &[8]).unwrap(), 8, 7), (Schema::ragged(DType::F32, &[]).unwrap(), 8, 6)]
    {
        let disk = MemoryDisk::new();
        let store = of(schema).create_in(disk.directory()).unwrap();
        store.append_fixed(&[1; 80], right).unwrap();
        drop(store);
        // As another program may have replaced record 4: sound bytes, and not what the schema says.
        let mut meta = disk.content("meta.zr").unwrap();
        for field in [4, 8] {
            meta[16 + 16 * 4 + field] = wrong;
        }
        disk.put("meta.zr", &meta);
        disk.put("check.zr", b"");
        let report = reader(&disk, false).verify().unwrap();
        let faults: Vec<_> = report.faults.iter().map(|fault| (fault.kind, fault.record)).collect();
        assert_eq!(faults, [(FaultKind::Checks, None), (FaultKind::Schema, Some(4))], "{:?}", report.faults);
        assert!(report.faults[1].detail.contains(&format!("the record has {wrong} bytes")));
        // It is named, and not taken out.
        let report = repair_in(disk.directory()).unwrap();
        assert_eq!((report.records, report.removed.len()), (10, 0), "{report:?}");
        assert!(report.faults.iter().any(|fault| fault.kind == FaultKind::Schema));
    }
}

#[test]
fn a_record_that_another_program_replaced_is_no_damage_although_the_length_is_the_old_one() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    // As Python deletes the last record and appends another: only the frontier tells.
    let (mut chunk, mut meta) = (disk.content("0.zr").unwrap(), disk.content("meta.zr").unwrap());
    let (start, length, entry) = (chunk.len() as u32, 30_u32, 16 + 19 * 16);
    chunk.extend([7; 30]);
    meta[8..12].copy_from_slice(&(start + length).to_le_bytes());
    for (field, value) in [start, length, length].into_iter().enumerate() {
        meta[entry + 4 * field..][..4].copy_from_slice(&value.to_le_bytes());
    }
    disk.put("0.zr", &chunk);
    disk.put("meta.zr", &meta);

    let report = reader(&disk, false).verify().unwrap();
    assert_eq!((report.checked, report.unchecked, report.fault_count), (19, 1, 0), "{report:?}");
    assert_eq!(reader(&disk, true).get(19).unwrap(), [7; 30]);
}

#[test]
fn a_swapped_missing_or_cut_dictionary_is_a_mismatch_with_both_ids() {
    let texts = |word: &str| -> Vec<Vec<u8>> {
        (0..2000)
            .map(|i| {
                let other = i * 31 % 977;
                format!(
                    "{{\"{word}\": {i}, \"{word} as it was before\": {other}, \"{word} is known\": true}}"
                )
                .into()
            })
            .collect()
    };
    let train = |word: &str| {
        let texts = texts(word);
        let slices: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let Training::Trained(dictionary) = train_dictionary(&slices, None).unwrap() else {
            panic!("no dictionary")
        };
        dictionary
    };
    let (own, other) = (train("name"), train("value"));
    let id = |dictionary: &[u8]| u32::from_le_bytes(dictionary[4..8].try_into().unwrap());
    let disk = MemoryDisk::new();
    let store = CreateOptions::new()
        .codec(Codec::zstd_dict().with_level(3))
        .dictionary(own.clone())
        .create_in(disk.directory())
        .unwrap();
    let content = texts("name");
    store.append_slices(content.iter().map(Vec::as_slice)).unwrap();
    assert!(store.stats().unwrap().zstd_dict_records > 1900);
    drop(store);

    for (bytes, what) in [(other.as_slice(), "swapped"), (&own[..own.len() - 1], "cut")] {
        disk.put("dict.zr", bytes);
        for writable in [false, true] {
            let error = OpenOptions::new().writable(writable).open_in(disk.directory()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DictionaryMismatch, "{what}: {error}");
            let text = error.to_string();
            assert!(text.contains(&id(&own).to_string()) && text.contains(&id(bytes).to_string()), "{text}");
        }
    }
    // Without the remembered identity, as in a store of Python, the frame's own id tells.
    let kept = disk.content("check.zr").unwrap();
    disk.put("check.zr", b"");
    disk.put("dict.zr", &other);
    let error = reader(&disk, false).get(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DictionaryMismatch, "{error}");
    disk.put("check.zr", &kept);
    disk.put("dict.zr", &own);
    assert_eq!(reader(&disk, true).get(7).unwrap(), content[7]);

    let missing = disk.fork();
    loaderx_core::io::Directory::remove(&missing, "dict.zr").unwrap();
    let store = reader(&missing, false);
    assert_eq!(store.get(0).unwrap_err().kind(), ErrorKind::DictionaryMismatch);
    let error = OpenOptions::new().writable(true).open_in(missing.directory()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DictionaryMismatch);
}

#[test]
fn a_table_entry_that_promises_gigabytes_is_held_against_its_frame() {
    let disk = MemoryDisk::new();
    let store = CreateOptions::new()
        .codec(Codec::zstd())
        .format(loaderx_core::format::FormatVersion::V4)
        .create_in(disk.directory())
        .unwrap();
    // A frame of some 30 bytes, and one that is long enough for gigabytes but says what it holds.
    let mut long = Random::new(4).record(600_000);
    long.iter_mut().for_each(|byte| *byte &= 0x0f);
    store.append_slices([[1_u8; 4000].as_slice(), &long]).unwrap();
    store.sync().unwrap();
    drop(store);
    for (index, named) in [(0, "a frame of that length holds at most"), (1, "600000")] {
        let meta = disk.content("meta.zr").unwrap();
        let mut forged = meta.clone();
        forged[16 + 16 * index + 8..][..4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
        disk.put("meta.zr", &forged);
        let store = reader(&disk, false);
        let error = store.get(index as u64).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        assert!(error.to_string().contains(named) && error.to_string().contains("2147483648"), "{error}");
        let report = store.verify().unwrap();
        assert_eq!(report.faults.iter().map(|fault| fault.record).collect::<Vec<_>>(), [Some(index as u64)]);
        disk.put("meta.zr", &meta);
    }
}

#[test]
fn records_that_were_never_written_are_one_fault_and_repair_cuts_them_off() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    // A header that has gained a bit, over the hole that the rest of the table is; and no checks that contradict it.
    let mut meta = disk.content("meta.zr").unwrap();
    meta.resize(16 + 16 * 50_000, 0);
    meta[12..16].copy_from_slice(&(20_u32 | 1 << 15).to_le_bytes());
    disk.put("meta.zr", &meta);
    disk.put("check.zr", b"");
    let store = reader(&disk, false);
    assert_eq!(store.get(19).unwrap(), records()[19]);
    assert!(store.get(20).unwrap_err().is_corrupt());
    let report = store.verify().unwrap();
    let faults: Vec<_> = report.faults.iter().filter(|fault| fault.kind == FaultKind::Entry).collect();
    assert_eq!(faults.iter().map(|fault| fault.record).collect::<Vec<_>>(), [Some(20)]);
    assert!(faults[0].detail.contains("32787"), "{}", faults[0]);
    drop(store);
    let report = repair_in(disk.directory()).unwrap();
    assert_eq!((report.records, report.entries_lost, report.removed.len()), (20, 1 << 15, 0));
    let store = reader(&disk, true);
    assert_eq!(store.gather_packed(&(0..20).collect::<Vec<_>>()).unwrap().0, records().concat());
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn repair_keeps_no_more_damaged_bytes_than_the_chunks_hold() {
    let disk = MemoryDisk::new();
    drop(filled(&disk, &CreateOptions::new()));
    // Every entry names all bytes of the chunk, as a frame that they are not.
    let chunk = disk.content("0.zr").unwrap();
    let length = (chunk.len() as u32).to_le_bytes();
    let mut meta = disk.content("meta.zr").unwrap();
    for index in 0..20 {
        let entry = [[0; 4], length, length, [0, 0, 1, 0]].concat();
        meta[16 + 16 * index..][..16].copy_from_slice(&entry);
    }
    disk.put("meta.zr", &meta);
    disk.put("check.zr", b"");
    let report = repair_in(disk.directory()).unwrap();
    assert_eq!((report.records, report.removed.len(), report.faults.len()), (0, 20, 20));
    let aside = disk.content("lost-0.bin").unwrap();
    assert_eq!(aside.len(), chunk.len() + 20 * 16);
    assert_eq!(aside[16..16 + chunk.len()], chunk);
}
