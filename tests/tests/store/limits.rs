//! The edges of the format: record lengths, record counts, chunk boundaries, offsets past 4 GiB.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use loaderx_core::format::FormatVersion;
use loaderx_core::format::check::{CheckHeader, SLOT_BYTES};
use loaderx_core::io::memory::MemoryDisk;
use loaderx_core::{Codec, CreateOptions, ErrorKind, OpenOptions, ReadMode, Store};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

const GIB_4: u64 = 1 << 32;

fn create(path: &Path, format: FormatVersion) -> Store {
    CreateOptions::new().format(format).create(path).unwrap()
}

#[test]
fn a_record_of_version_3_has_1_byte_to_1_mib() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    for codec in [Codec::Raw, Codec::zstd()] {
        let _ = fs::remove_dir_all(&path);
        let store = CreateOptions::new().codec(codec).create(&path).unwrap();
        let mut model = Model::default();
        for length in [1, 2, (1 << 20) - 1, 1 << 20] {
            let record = Random::new(length as u64).record(length);
            store.append_slices([record.as_slice()]).unwrap();
            model.append(&[record]);
        }
        model.assert_holds(&store);
        for length in [0, (1 << 20) + 1, 1 << 22] {
            let before = (store.len(), snapshot_of_content(&path));
            // A good record before the bad one is not written either.
            let error = store.append_slices([&[1; 10][..], &vec![2; length], &[3; 10]]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
            assert!(error.to_string().contains(&length.to_string()), "{error}");
            assert_eq!((store.len(), snapshot_of_content(&path)), before, "length {length}");
        }
        model.assert_holds(&store);
    }
}

/// The chunk and the used start of the table.
fn snapshot_of_content(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let mut table = vec![0; 4096];
    fs::File::open(path.join("meta.zr")).unwrap().read_exact_at(&mut table, 0).unwrap();
    (fs::read(path.join("0.zr")).unwrap(), table)
}

#[test]
fn a_record_of_version_4_may_be_empty_or_larger_than_1_mib() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    for codec in [Codec::Raw, Codec::zstd()] {
        let _ = fs::remove_dir_all(&path);
        let store = CreateOptions::new().codec(codec).format(FormatVersion::V4).create(&path).unwrap();
        let mut model = Model::default();
        for length in [0, 1, 0, (1 << 20) + 1, 9 << 20, 0] {
            let record = Random::new(length as u64).record(length);
            store.append_slices([record.as_slice()]).unwrap();
            model.append(&[record]);
        }
        model.assert_holds(&store);
        drop(store);
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            model.assert_holds(&OpenOptions::new().verify(true).read_mode(mode).open(&path).unwrap());
        }
        let mut store = Store::open_writable(&path).unwrap();
        model.delete(&[3, 0]);
        store.delete(&[3, 0]).unwrap();
        store.compact().unwrap();
        model.assert_holds(&store);
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn only_empty_records_make_a_store_of_version_4_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = create(&dir.path().join("x"), FormatVersion::V4);
    let mut model = Model::default();
    model.append(&vec![Vec::new(); 40]);
    store.append(&[], &[0; 40]).unwrap();
    model.assert_holds(&store);
    model.delete(&[0, 39, 7]);
    store.delete(&[0, 39, 7]).unwrap();
    store.compact().unwrap();
    model.assert_holds(&store);
}

/// Moves the write frontier of an empty store, as if chunks had been filled up to there.
fn move_frontier(path: &Path, chunk: u16, offset: u32) {
    let meta = fs::File::options().write(true).open(path.join("meta.zr")).unwrap();
    meta.write_all_at(&chunk.to_le_bytes(), 6).unwrap();
    meta.write_all_at(&offset.to_le_bytes(), 8).unwrap();
    // Which remembers where the frontier was.
    fs::remove_file(path.join("check.zr")).unwrap();
    for chunk in 0..=chunk {
        let file = fs::File::create(path.join(format!("{chunk}.zr"))).unwrap();
        file.set_len(u64::from(offset)).unwrap();
    }
}

#[test]
fn a_record_that_would_end_at_the_last_byte_of_a_chunk_starts_the_next() {
    for format in [FormatVersion::V3, FormatVersion::V4] {
        for (room, stays) in [(99, false), (100, false), (101, true)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            drop(create(&path, format));
            move_frontier(&path, 0, (GIB_4 - room) as u32);
            let store = Store::open_writable(&path).unwrap();
            let record = Random::new(room).record(100);
            store.append_slices([record.as_slice()]).unwrap();
            assert_eq!(path.join("1.zr").exists(), !stays, "{room} bytes of room");
            assert_eq!(store.get(0).unwrap(), record);
            drop(store);
            assert_eq!(Store::open(&path).unwrap().get(0).unwrap(), record);
        }
    }
}

#[test]
fn packed_records_that_cross_the_end_of_a_chunk_are_whole_on_both_sides() {
    // Few records and many, so that the end comes before and after the first write of a run.
    for (count, room) in [(20, 6000), (2000, 900_000)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        drop(create(&path, FormatVersion::V4));
        move_frontier(&path, 0, (GIB_4 - room) as u32);
        let store = Store::open_writable(&path).unwrap();
        let bytes = Random::new(room).record(count * 784);
        store.append_fixed(&bytes, 784).unwrap();
        // Bytes in front of the first offset belong to no record.
        store.append(&bytes, &[10, 500, 500 + count as u64]).unwrap();
        drop(store);
        assert!(path.join("1.zr").exists());
        let store = OpenOptions::new().verify(true).open(&path).unwrap();
        let mut expected: Vec<&[u8]> = bytes.chunks(784).collect();
        expected.extend([&bytes[10..500], &bytes[500..500 + count], &bytes[500 + count..]]);
        assert_eq!(store.len(), expected.len() as u64);
        for (index, record) in (0..).zip(expected) {
            assert_eq!(store.get(index).unwrap(), record, "record {index} of {count}");
        }
    }
}

#[test]
fn records_on_both_sides_of_4_gib_are_gathered_deleted_and_compacted() {
    for format in [FormatVersion::V3, FormatVersion::V4] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        drop(create(&path, format));
        // The third chunk: byte 12 GiB of the store and more.
        move_frontier(&path, 2, (GIB_4 - 6000) as u32);
        let mut store = Store::open_writable(&path).unwrap();
        let mut model = Model::default();
        for seed in 0..4 {
            let records = Random::new(seed).records(20, 1, 900);
            assert_eq!(
                store.append_slices(records.iter().map(Vec::as_slice)).unwrap(),
                model.append(&records)
            );
        }
        assert!(path.join("3.zr").exists());
        model.assert_holds(&store);
        drop(store);
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            model.assert_holds(&OpenOptions::new().verify(true).read_mode(mode).open(&path).unwrap());
        }
        store = Store::open_writable(&path).unwrap();
        let third: Vec<u64> = (0..80).step_by(3).collect();
        model.delete(&third);
        store.delete(&third).unwrap();
        model.assert_holds(&store);
        let report = store.compact().unwrap();
        assert!(report.bytes_before > 2 * GIB_4 && report.bytes_after < 60_000, "{report:?}");
        model.assert_holds(&store);
        drop(store);
        let names: Vec<String> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.as_bytes()[0].is_ascii_digit())
            .collect();
        assert_eq!(names, ["0.zr"], "compact gives the chunks back");
        let store = Store::open(&path).unwrap();
        model.assert_holds(&store);
        assert!(store.verify().unwrap().is_sound());
    }
}

/// Makes the header count `length` records, all of them the one at the start of chunk 0.
fn claim_records(path: &Path, length: u32, kept: u32) {
    let meta = fs::File::options().read(true).write(true).open(path.join("meta.zr")).unwrap();
    let mut entry = [0; 16];
    meta.read_exact_at(&mut entry, 16).unwrap();
    meta.write_all_at(&length.to_le_bytes(), 12).unwrap();
    meta.write_all_at(&entry.repeat(kept as usize), 16 + 16 * u64::from(length - kept)).unwrap();
    // Without checks of as many, opening for writing would hold each of them against the frontier.
    let checks = fs::File::options().read(true).write(true).open(path.join("check.zr")).unwrap();
    let mut slots = [0; 2 * SLOT_BYTES];
    checks.read_exact_at(&mut slots, 0).unwrap();
    let length = u64::from(length);
    let header =
        CheckHeader { synced_length: length, own_until: length, ..CheckHeader::newest(&slots).unwrap() };
    checks.write_all_at(&[header.encode(), header.encode()].concat(), 0).unwrap();
}

#[test]
fn the_record_count_of_version_3_ends_at_2_to_the_24() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let store = create(&path, FormatVersion::V3);
    store.append_slices([b"one".as_slice()]).unwrap();
    drop(store);
    let limit = 1_u32 << 24;
    claim_records(&path, limit - 2, 5);
    let store = Store::open_writable(&path).unwrap();
    assert_eq!(store.len(), u64::from(limit) - 2);
    assert_eq!(store.get(store.len() - 1).unwrap(), b"one");
    let before = snapshot_of_content(&path);
    let error = store.append_slices([b"a".as_slice(), b"b", b"c"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert!(error.to_string().contains("16777216"), "{error}");
    assert_eq!(snapshot_of_content(&path), before);
    assert_eq!(store.append_slices([b"a".as_slice(), b"b"]).unwrap(), u64::from(limit) - 2);
    assert_eq!(store.append_slices([b"c".as_slice()]).unwrap_err().kind(), ErrorKind::LimitExceeded);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.len(), u64::from(limit));
    assert_eq!(store.get(u64::from(limit) - 1).unwrap(), b"b");
}

#[test]
fn a_version_4_store_counts_past_2_to_the_24_and_2_to_the_31() {
    for length in [(1 << 24) + 5, (1 << 31) + 5, u32::MAX - 1] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let store = create(&path, FormatVersion::V4);
        store.append_slices([b"one".as_slice()]).unwrap();
        drop(store);
        claim_records(&path, length, 5);
        let store = Store::open_writable(&path).unwrap();
        assert_eq!(store.append_slices([b"two".as_slice()]).unwrap(), u64::from(length));
        assert_eq!(store.get(u64::from(length)).unwrap(), b"two");
        assert_eq!(store.get(u64::from(length) - 1).unwrap(), b"one");
        if length == u32::MAX - 1 {
            let error = store.append_slices([b"three".as_slice()]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        }
        drop(store);
        assert_eq!(Store::open(&path).unwrap().get(u64::from(length)).unwrap(), b"two");
    }
}

#[test]
fn compact_gives_the_space_of_deleted_records_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut store = create(&path, FormatVersion::V3);
    let records = Random::new(1).records(500, 1000, 3000);
    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    let allocated = || fs::metadata(path.join("0.zr")).unwrap().blocks() * 512;
    let before = allocated();
    store.delete(&(0..450).collect::<Vec<u64>>()).unwrap();
    store.compact().unwrap();
    let kept: u64 = store.stats().unwrap().stored_bytes;
    assert_eq!(fs::metadata(path.join("0.zr")).unwrap().len(), kept);
    assert!(allocated() * 5 < before, "{} of {before} bytes are still allocated", allocated());
}

#[test]
fn runs_longer_than_a_piece_of_copying_move_whole() {
    let records = Random::new(4).records(14, 1 << 20, 1 << 20);
    // Into free space of as many bytes, and over bytes that are still needed.
    for holes in [(0..7).collect::<Vec<u64>>(), vec![0]] {
        let disk = MemoryDisk::new();
        let mut store = CreateOptions::new().create_in(disk.directory()).unwrap();
        let mut model = Model::default();
        model.append(&records);
        store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
        store.delete(&holes).unwrap();
        model.delete(&holes);
        store.compact().unwrap();
        model.compare(&store).unwrap();
        assert!(store.verify().unwrap().is_sound());
    }
}
