//! Directories made to harm: every field of the header and of a table entry at its extremes, and foreign bytes in every
//! file. Whatever they hold, there is an error or the right data; nothing is made, and nothing is read out of bounds.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use loaderx_core::format::check::CheckEntry;
use loaderx_core::format::journal::{JournalEntry, JournalHeader};
use loaderx_core::format::{FormatVersion, Header};
use loaderx_core::store::train_dictionary;
use loaderx_core::{Codec, CreateOptions, DType, OpenOptions, ReadMode, Schema, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::random::Random;

const RECORDS: usize = 20;
const LENGTH: usize = 250;

fn records() -> Vec<Vec<u8>> {
    Random::new(5).records(RECORDS, LENGTH, LENGTH)
}

fn options() -> Vec<CreateOptions> {
    let samples = Random::new(77).records(600, 200, 400);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = train_dictionary(&samples, Some(4096)).unwrap().into_dictionary().unwrap();
    vec![
        CreateOptions::new().schema(Schema::dense(DType::U8, &[LENGTH]).unwrap()),
        CreateOptions::new().codec(Codec::zstd()),
        CreateOptions::new().codec(Codec::zstd_dict()).dictionary(dictionary),
        CreateOptions::new().format(FormatVersion::V4),
    ]
}

/// Makes a store, lets `harm` at its files, and holds every way of reading it against the records.
fn survive(options: &CreateOptions, what: &str, harm: impl Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let records = records();
    let store = options.create(&path).unwrap();
    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    drop(store);
    harm(&path);
    let names = |path: &Path| {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(&path);
    for mode in [ReadMode::Mapped, ReadMode::Positioned] {
        let Ok(store) = OpenOptions::new().verify(true).read_mode(mode).open(&path) else { continue };
        for index in 0..store.len().min(64) {
            if let Ok(record) = store.get(index) {
                let right = records.get(index as usize);
                assert!(
                    right == Some(&record),
                    "{what}, {mode:?}: record {index} is wrong and passed as right"
                );
            }
        }
        // A report or an error, in bounded time and memory; only that they return is asked.
        drop(store.stats());
        drop(store.verify());
    }
    assert_eq!(names(&path), before, "{what}: opening for reading changed the directory");
    if let Ok(store) = Store::open_writable(&path)
        && let Ok(first) = store.append_slices([records[0].as_slice()])
    {
        assert_eq!(
            store.get(first).unwrap(),
            records[0],
            "{what}: an append into what was left is not read back"
        );
    }
    assert!(names(&path).len() < before.len() + 8, "{what}: opening for writing made {:?}", names(&path));
}

fn poke(path: &Path, name: &str, offset: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path.join(name)).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

const EXTREMES: [u32; 8] = [0, 1, 250, 4095, 5000, 0x7fff_ffff, 0x8000_0000, u32::MAX];

#[test]
fn every_field_of_the_header_at_its_extremes_is_an_error_or_harmless() {
    for (kind, options) in options().iter().enumerate() {
        for (offset, width) in [(0, 4), (4, 2), (6, 2), (8, 4), (12, 4)] {
            for value in EXTREMES {
                survive(options, &format!("store {kind}, header byte {offset} = {value}"), |path| {
                    poke(path, "meta.zr", offset, &value.to_le_bytes()[..width]);
                });
            }
        }
    }
}

#[test]
fn every_field_of_a_table_entry_at_its_extremes_is_an_error_or_harmless() {
    for (kind, options) in options().iter().enumerate() {
        for (field, width) in [(0, 4), (4, 4), (8, 4), (12, 2), (14, 1), (15, 1)] {
            for value in EXTREMES {
                survive(options, &format!("store {kind}, byte {field} of entry 3 = {value}"), |path| {
                    poke(path, "meta.zr", 16 + 16 * 3 + field, &value.to_le_bytes()[..width]);
                });
            }
        }
    }
}

#[test]
fn foreign_bytes_in_any_file_are_an_error_or_harmless() {
    let mut random = Random::new(9);
    for (kind, options) in options().iter().enumerate() {
        for name in ["schema.msgpack", "dict.zr", "check.zr", "journal.zr", "0.zr", "lock.zr"] {
            for length in [0, 1, 16, 63, 64, 65, 300, 5000] {
                let bytes: Vec<u8> = random.records(1, length, length).remove(0);
                survive(options, &format!("store {kind}, {length} foreign bytes as {name}"), |path| {
                    // A dictionary or schema where there was none decides about other stores than these.
                    if path.join(name).exists() || matches!(name, "journal.zr") {
                        fs::write(path.join(name), &bytes).unwrap();
                    }
                });
            }
        }
    }
}

#[test]
fn an_entry_that_names_bytes_far_away_makes_no_file_longer_and_stays_an_error() {
    for options in [CreateOptions::new(), CreateOptions::new().format(FormatVersion::V4)] {
        for (chunk, offset) in [(0_u16, 0xf000_0000_u32), (0, 5001), (1, 0), (9, 0x7000_0000)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let store = options.create(&path).unwrap();
            store.append_slices(records().iter().map(Vec::as_slice)).unwrap();
            drop(store);
            poke(&path, "meta.zr", 16 + 16 * 3, &offset.to_le_bytes());
            poke(&path, "meta.zr", 16 + 16 * 3 + 12, &chunk.to_le_bytes());
            // As Python leaves a store: the whole table is suspected.
            fs::remove_file(path.join("check.zr")).unwrap();
            for round in 0..2 {
                let Ok(store) = Store::open_writable(&path) else { continue };
                if let Ok(first) = store.append_slices([b"new".as_slice()]) {
                    assert_eq!(store.get(first).unwrap(), b"new");
                }
                assert!(store.get(3).is_err(), "chunk {chunk}, offset {offset}, round {round}");
                assert_eq!(store.get(4).unwrap(), records()[4]);
            }
            let longest = fs::read_dir(&path)
                .unwrap()
                .map(Result::unwrap)
                .filter(|entry| entry.file_name() != "meta.zr")
                .map(|entry| entry.metadata().unwrap().len())
                .max();
            assert!(longest < Some(10_000), "chunk {chunk}, offset {offset}: {longest:?}");
        }
    }
}

/// CRC-32 in the most obvious way.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[test]
fn a_journal_whose_bytes_are_not_those_of_its_records_is_refused_before_anything_moves() {
    let (disk, model) = crash::prepare(&CreateOptions::new(), &[Operation::Append(vec![vec![3; 10]; 4])]);
    let meta = disk.content("meta.zr").unwrap();
    let before = Header::decode(meta.first_chunk().unwrap()).unwrap();
    for (data, offset) in [(9_u8, 0_u32), (10, 0), (11, 0), (10, 41), (10, 0xf000_0000)] {
        let mut location: [u8; 16] = *meta[16..].first_chunk().unwrap();
        location[..4].copy_from_slice(&offset.to_le_bytes());
        let entry = JournalEntry { index: 0, location, check: CheckEntry::default() };
        let disk = disk.fork();
        let mut header =
            JournalHeader { before, after: before, entries: 1, data: data.into(), trim: false, crc: 0 };
        let behind = [entry.encode().to_vec(), vec![7; data.into()]].concat();
        let crc = crc32(&[JournalHeader::checked_part(&header.encode()), &behind].concat());
        header.crc = crc;
        disk.put("journal.zr", &[header.encode().to_vec(), behind].concat());
        let opened = crash::open_writable(&disk);
        if (data, offset) == (10, 0) {
            assert_eq!(opened.unwrap().get(0).unwrap(), [7; 10], "a whole one is carried out");
            continue;
        }
        let error = opened.unwrap_err();
        assert!(error.is_corrupt() && error.path().unwrap().ends_with("journal.zr"), "{error}");
        let expected = match offset {
            0 => format!("{data} bytes for records of 10"),
            _ => format!("to bytes {offset}..{} of chunk 0, which has 40", u64::from(offset) + 10),
        };
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!(disk.content("meta.zr").unwrap(), meta);
        assert_eq!(disk.content("0.zr").unwrap(), model.records.concat());
    }
}
