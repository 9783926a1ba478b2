//! Append and gather against a plain vector, for every codec, version and way of reading.
#![forbid(unsafe_code)]

use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use loaderx_core::format::FormatVersion;
use loaderx_core::io::{Directory, memory::MemoryDisk};
use loaderx_core::{Codec, CreateOptions, DType, ErrorKind, Literals, OpenOptions, ReadMode, Schema, Store};
use loaderx_tests::random::Random;
use proptest::prelude::*;

fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let record = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..200),
        (1_usize..3000, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
    ];
    proptest::collection::vec(record, 0..20)
}

fn dictionary() -> Vec<u8> {
    (0..2000_u32).flat_map(|i| (i * 7 % 251).to_le_bytes()).collect()
}

fn codec(number: u8) -> Codec {
    let dictionary = Codec::zstd_dict().with_level(5);
    let raw_literals = [Codec::zstd(), dictionary].map(|codec| codec.with_literals(Literals::Raw));
    [Codec::Raw, Codec::zstd(), dictionary, raw_literals[0], raw_literals[1]][usize::from(number % 5)]
}

fn check(store: &Store, model: &[Vec<u8>], indices: &[u64]) {
    assert_eq!(store.len(), model.len() as u64);
    let expected: Vec<&[u8]> = indices.iter().map(|&i| model[i as usize].as_slice()).collect();
    let (bytes, offsets) = store.gather_packed(indices).unwrap();
    assert_eq!(bytes, expected.concat());
    assert_eq!(offsets.len(), indices.len() + 1);
    let places: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
    let mut dst = vec![MaybeUninit::uninit(); bytes.len()];
    assert_eq!(store.gather_at(indices, &places, &mut dst).unwrap(), bytes);
    let mut lengths = vec![9];
    store.lengths(indices, &mut lengths).unwrap();
    assert!(lengths.iter().zip(&expected).all(|(&length, record)| length == record.len() as u64));
    let mut visited = Vec::new();
    store
        .visit(indices, |position, record| {
            visited.push((position, record.to_vec()));
            Ok(())
        })
        .unwrap();
    assert_eq!(visited.len(), indices.len());
    for (i, (position, record)) in visited.iter().enumerate() {
        assert_eq!((*position, record.as_slice()), (i, expected[i]));
    }
    store.advise(indices);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_was_appended_is_gathered(
        batches in proptest::collection::vec(records(), 1..4),
        picks in proptest::collection::vec(any::<u64>(), 0..40),
        which in any::<u8>(),
        v4 in any::<bool>(),
        checked in any::<bool>(),
        in_memory in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let directory: Arc<dyn Directory> = if in_memory {
            MemoryDisk::new().directory()
        } else {
            Arc::new(loaderx_core::io::Disk::new(dir.path()))
        };
        let version = if v4 { FormatVersion::V4 } else { FormatVersion::V3 };
        let store = CreateOptions::new()
            .codec(codec(which))
            .dictionary(dictionary())
            .format(version)
            .create_in(Arc::clone(&directory))
            .unwrap();
        let mut model: Vec<Vec<u8>> = Vec::new();
        for batch in batches {
            let first = store.append_slices(batch.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(first, model.len() as u64);
            model.extend(batch);
            let indices: Vec<u64> = (0..model.len() as u64).rev().collect();
            check(&store, &model, &indices);
        }
        store.sync().unwrap();
        let indices: Vec<u64> =
            picks.iter().filter(|_| !model.is_empty()).map(|pick| pick % model.len() as u64).collect();
        check(&store, &model, &indices);
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            let reader = OpenOptions::new().read_mode(mode).verify(checked).open_in(Arc::clone(&directory)).unwrap();
            prop_assert_eq!(reader.codec(), codec(which));
            check(&reader, &model, &indices);
        }
    }
}

#[test]
fn empty_records_are_for_version_4_only() {
    let v3 = CreateOptions::new().create_in(MemoryDisk::new().directory()).unwrap();
    let error = v3.append(b"ab", &[0, 1, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(v3.is_empty());

    let v4 = CreateOptions::new().format(FormatVersion::V4).create_in(MemoryDisk::new().directory()).unwrap();
    v4.append(b"ab", &[0, 1, 1, 2]).unwrap();
    check(&v4, &[b"a".to_vec(), vec![], b"b".to_vec(), vec![]], &[3, 2, 1, 0, 1]);
    assert_eq!(v4.gather_fixed(&[1, 3, 1], 0, &mut []).unwrap(), b"");
}

#[test]
fn records_at_the_limit_work_and_one_over_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), CreateOptions::new()).unwrap();
    let limit = vec![7; 1 << 20];
    store.append_slices([limit.as_slice()]).unwrap();
    assert_eq!(store.get(0).unwrap(), limit);
    let before = std::fs::metadata(dir.path().join("0.zr")).unwrap().len();
    let error = store.append_slices([b"a".as_slice(), &vec![7; (1 << 20) + 1]]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("1048577"), "{error}");
    assert_eq!(std::fs::metadata(dir.path().join("0.zr")).unwrap().len(), before);
    assert_eq!(store.len(), 1);
}

#[test]
fn a_record_of_another_length_than_the_schema_s_is_refused_before_anything_is_written() {
    let dense = Schema::dense(DType::F32, &[2, 3]).unwrap();
    let ragged = Schema::ragged(DType::U16, &[2]).unwrap();
    for (schema, good, bad) in
        [(dense, vec![24], vec![4, 23, 25, 48]), (ragged, vec![4, 40], vec![1, 2, 6, 39])]
    {
        let disk = MemoryDisk::new();
        let options = CreateOptions::new().schema(schema).codec(Codec::zstd());
        let store = options.create_in(disk.directory()).unwrap();
        for length in &good {
            store.append_slices([vec![1; *length].as_slice()]).unwrap();
        }
        let before = (disk.content("0.zr"), disk.content("meta.zr"));
        for length in bad {
            let right = vec![2; good[0]];
            let error = store.append_slices([right.as_slice(), &vec![3; length]]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
            assert!(
                error.to_string().contains(&format!("record 1 of this append has {length} bytes")),
                "{error}"
            );
            assert_eq!(
                store.append_fixed(&vec![3; length], length).unwrap_err().kind(),
                ErrorKind::SchemaMismatch
            );
            assert!((disk.content("0.zr"), disk.content("meta.zr")) == before, "{length}");
            assert_eq!(store.len(), good.len() as u64);
        }
    }
}

#[test]
fn records_longer_than_what_is_collected_for_a_write_keep_their_place_among_short_ones() {
    let disk = MemoryDisk::new();
    let model: Vec<Vec<u8>> = [10, 300 << 10, 20, 30, 256 << 10, 40]
        .into_iter()
        .zip(1..)
        .map(|(len, byte)| vec![byte; len])
        .collect();
    {
        let store = CreateOptions::new().codec(Codec::Raw).create_in(disk.directory()).unwrap();
        store.append_slices(model.iter().map(Vec::as_slice)).unwrap();
    }
    let store = OpenOptions::new().open_in(disk.directory()).unwrap();
    check(&store, &model, &[0, 1, 2, 3, 4, 5]);
}

#[test]
fn files_take_no_more_room_than_their_content() {
    for (format, meta) in [(FormatVersion::V3, 268_435_472), (FormatVersion::V4, 16 + 4 * 16)] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), CreateOptions::new().format(format)).unwrap();
        store.append_fixed(&[1; 4000], 1000).unwrap();
        store.sync().unwrap();
        let metadata = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap();
        assert_eq!(metadata("0.zr").len(), 4000);
        assert_eq!(metadata("check.zr").len(), 128 + 4 * 8);
        // Python maps the whole table of version 3, so it is there in full, as a hole.
        assert_eq!(metadata("meta.zr").len(), meta);
        assert!(metadata("meta.zr").blocks() * 512 <= 65_536, "the table's tail is no hole");
    }
}

#[test]
fn a_reader_sees_what_another_handle_has_committed_since() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Store::create(dir.path(), CreateOptions::new()).unwrap();
    for mode in [ReadMode::Mapped, ReadMode::Positioned] {
        let reader = OpenOptions::new().read_mode(mode).open(dir.path()).unwrap();
        let before = reader.len();
        let record = vec![u8::try_from(before).unwrap(); 5000];
        assert_eq!(writer.append_slices([record.as_slice()]).unwrap(), before);
        assert_eq!(reader.get(before).unwrap(), record);
        assert_eq!(reader.len(), before + 1);
        assert_eq!(reader.get(before + 1).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}

#[test]
fn there_is_one_writer_and_its_lock_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = Store::create(dir.path(), CreateOptions::new()).unwrap();
    let error = Store::open_writable(dir.path()).unwrap_err();
    assert!(error.is_locked());
    assert_eq!(error.path(), Some(dir.path()));
    let reader = Store::open(dir.path()).unwrap();
    assert_eq!(reader.append_fixed(b"a", 1).unwrap_err().kind(), ErrorKind::ReadOnly);
    drop(first);
    Store::open_writable(dir.path()).unwrap();
}

#[test]
fn create_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::create(dir.path(), CreateOptions::new()).unwrap());
    let again = Store::create(dir.path(), CreateOptions::new()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);

    // Chunks whose table is lost are somebody's data.
    let lost = tempfile::tempdir().unwrap();
    std::fs::write(lost.path().join("0.zr"), b"records").unwrap();
    let error = Store::create(lost.path(), CreateOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(lost.path().join("0.zr")).unwrap(), b"records");
}

#[test]
fn opening_what_is_not_there_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for writable in [false, true] {
        let error = OpenOptions::new().writable(writable).open(dir.path()).unwrap_err();
        assert!(error.is_not_found(), "{error}");
        let missing = OpenOptions::new().writable(writable).open(dir.path().join("no")).unwrap_err();
        assert!(missing.is_not_found(), "{missing}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn threads_append_and_gather_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), CreateOptions::new().codec(Codec::zstd())).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..3_u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..40_u8 {
                    let record = [[writer; 100], [round; 100]].concat();
                    store.append_slices([record.as_slice(), record.as_slice()]).unwrap();
                }
            });
        }
        for _ in 0..2 {
            let store = &store;
            scope.spawn(move || {
                while store.len() < 240 {
                    let length = store.len();
                    // Pairs are committed together.
                    assert!(length.is_multiple_of(2));
                    let all: Vec<u64> = (0..length).collect();
                    let (bytes, _) = store.gather_packed(&all).unwrap();
                    for pair in bytes.chunks(400) {
                        assert_eq!(pair[..200], pair[200..]);
                    }
                }
            });
        }
    });
    assert_eq!(store.len(), 240);
}
#[cfg(unix)]
#[test]
fn what_is_not_a_file_is_refused_and_not_waited_for() {
    for name in ["meta.zr", "0.zr", "check.zr", "schema.msgpack", "dict.zr", "journal.zr"] {
        for pipe in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::create(dir.path(), CreateOptions::new()).unwrap();
            store.append_fixed(b"abcd", 4).unwrap();
            drop(store);
            let path = dir.path().join(name);
            let _ = std::fs::remove_file(&path);
            if pipe {
                assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                std::fs::create_dir(&path).unwrap();
            }
            for writable in [false, true] {
                let read = OpenOptions::new()
                    .writable(writable)
                    .open(dir.path())
                    .and_then(|store| store.gather_packed(&[0]));
                let error = read.unwrap_err();
                assert!(error.path().is_some_and(|at| at == path), "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_codec_without_its_dictionary_is_refused_before_a_directory_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let error = Store::create(&path, CreateOptions::new().codec(Codec::zstd_dict())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!path.exists(), "a refused store left its directory behind");
}

#[test]
fn a_writer_that_opens_a_store_appends_in_the_way_that_it_was_created_with() {
    // Few values that repeat nothing: only compressed literals make these bytes shorter.
    let mut random = Random::new(5);
    let record: Vec<u8> = (0..4000).map(|_| (random.bits() & 15) as u8).collect();
    let stored = |codec: Codec| {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::create(dir.path(), CreateOptions::new().codec(codec)).unwrap());
        let store = Store::open_writable(dir.path()).unwrap();
        store.append_fixed(&record, 4000).unwrap();
        assert_eq!(store.get(0).unwrap(), record);
        store.stats().unwrap().stored_bytes
    };
    assert!(stored(Codec::zstd()) < 2500);
    assert!(stored(Codec::zstd().with_literals(Literals::Raw)) > 3900);
}
