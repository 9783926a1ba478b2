//! Directories made to harm ask for no more memory than their files hold.
//!
//! Every number that a store keeps on the disk (counts, lengths, offsets, sizes in frames, in the journal, in the checks,
//! in the schema) is forged, and everything that can be done to the store is done while the heap is watched. The test has
//! a binary to itself, as the meter counts the whole process.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use loaderx_core::format::check::{CheckHeader, SLOT_BYTES};
use loaderx_core::format::journal::{JOURNAL_HEADER_BYTES, JournalHeader};
use loaderx_core::format::{FormatVersion, HEADER_BYTES, Header};
use loaderx_core::io::memory::{Fault, MemoryDisk};
use loaderx_core::store::{repair, train_dictionary};
use loaderx_core::{Codec, CreateOptions, DType, OpenOptions, ReadMode, Schema, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::random::Random;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What may be asked for whatever the files hold: buffers of fixed size, a slot for each chunk, one record of the size
/// that a frame is believed without saying so, a report of 10,000 faults.
const CONSTANT: u64 = 8 << 20;
/// Lists of what the files hold, in memory: an entry of the table is 16 bytes there and some 60 here, while it is verified.
const FACTOR: u64 = 8;

const EXTREMES: [u32; 10] =
    [0, 1, 5000, 0x00ff_ffff, 0x0100_0000, 0x0fff_ffff, 0x7fff_ffff, 0x8000_0000, 0xffff_0000, u32::MAX];

type Files = Vec<(String, Vec<u8>)>;

fn files(disk: &MemoryDisk) -> Files {
    disk.file_names().into_iter().map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
}

/// Stores of every kind, some with a journal that waits to be carried out.
fn stores() -> Vec<(String, Files)> {
    let samples = Random::new(77).records(600, 200, 400);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = train_dictionary(&samples, Some(4096)).unwrap().into_dictionary().unwrap();
    let zstd = CreateOptions::new().codec(Codec::zstd());
    let options = [
        ("raw", CreateOptions::new().schema(Schema::dense(DType::U8, &[250]).unwrap())),
        ("zstd", zstd.clone()),
        ("dictionary", CreateOptions::new().codec(Codec::zstd_dict()).dictionary(dictionary)),
        ("version 4", zstd.format(FormatVersion::V4)),
    ];
    let mut stores = Vec::new();
    for (name, options) in options {
        let before = [Operation::Append(Random::new(5).records(20, 250, 250)), Operation::Delete(vec![0])];
        let (disk, _) = crash::prepare(&options, &before);
        stores.push((name.to_owned(), files(&disk)));
        for operation in [Operation::Delete(vec![1, 5]), Operation::Compact] {
            let waiting = (1..200).find_map(|k| {
                let disk = disk.fork();
                disk.inject(Fault::stop_at(k));
                let mut store = crash::open_writable(&disk).ok()?;
                operation.apply(&mut store).err()?;
                drop(store);
                disk.restart();
                OpenOptions::new().open_in(disk.directory()).is_err().then_some(disk)
            });
            stores.push((format!("{name}, {operation:?} waits"), files(&waiting.unwrap())));
        }
    }
    stores
}

/// Lays the files down, lets `harm` at them, and holds what everything asks for against what the files then hold.
fn survive(files: &Files, what: &str, harm: &dyn Fn(&Path)) {
    // In memory where that is possible: thousands of stores are synced.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for (which, work) in [("reading", read as fn(&Path)), ("repairing", mend), ("writing", write)] {
        let path = dir.path().join(which);
        fs::create_dir(&path).unwrap();
        for (name, bytes) in files {
            fs::write(path.join(name), bytes).unwrap();
        }
        harm(&path);
        let entries = fs::read_dir(&path).unwrap();
        // Holes hold nothing.
        let held: u64 = entries.map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum();
        HEAP.reset_peak_usage();
        let before = HEAP.current_usage();
        work(&path);
        let peak = (HEAP.peak_usage() - before) as u64;
        assert!(peak > 0, "the meter does not measure");
        let limit = FACTOR * held + CONSTANT;
        assert!(
            peak <= limit,
            "{what}: {which} asked for {peak} bytes; the files hold {held}, so {limit} are allowed"
        );
    }
}

/// Everything that a reader can do. Errors are welcome.
fn read(path: &Path) {
    for mode in [ReadMode::Mapped, ReadMode::Positioned] {
        for checked in [false, true] {
            let Ok(store) = OpenOptions::new().verify(checked).read_mode(mode).open(path) else { continue };
            read_all(&store);
            drop(store.verify());
            drop(store.stats());
        }
    }
}

fn read_all(store: &Store) {
    let length = store.len();
    for index in (0..length.min(24)).chain(length.saturating_sub(4)..length) {
        drop(store.get(index));
        drop(store.visit(&[index], |_, _| Ok(())));
        drop(store.lengths(&[index], &mut Vec::new()));
        store.advise(&[index]);
    }
}

fn mend(path: &Path) {
    if repair(path).is_ok() {
        read(path);
    }
}

fn write(path: &Path) {
    let Ok(mut store) = Store::open_writable(path) else { return };
    read_all(&store);
    drop(store.append_fixed(&[7; 250], 250));
    drop(store.delete(&[0]));
    drop(store.compact());
    drop(store.sync());
}

fn poke(path: &Path, name: &str, offset: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path.join(name)).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

fn lengthen(path: &Path, name: &str, length: u64) {
    fs::File::options().write(true).open(path.join(name)).unwrap().set_len(length).unwrap();
}

fn content<'f>(files: &'f Files, name: &str) -> Option<&'f [u8]> {
    files.iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes.as_slice())
}

fn header(files: &Files) -> Header {
    Header::decode(content(files, "meta.zr").unwrap().first_chunk::<HEADER_BYTES>().unwrap()).unwrap()
}

fn header_and_table(name: &str, files: &Files) {
    for (offset, width) in [(6, 2), (8, 4), (12, 4)] {
        for value in EXTREMES {
            survive(files, &format!("{name}: header byte {offset} = {value}"), &|path| {
                poke(path, "meta.zr", offset, &value.to_le_bytes()[..width]);
            });
        }
    }
    // One entry, and all of them; one field, and fields that agree with each other.
    for entries in [3..4, 0..19] {
        for (field, width) in [(0, 4), (4, 4), (8, 4), (12, 2)] {
            for value in EXTREMES {
                survive(files, &format!("{name}: byte {field} of entries {entries:?} = {value}"), &|path| {
                    for entry in entries.clone() {
                        poke(path, "meta.zr", 16 + 16 * entry + field, &value.to_le_bytes()[..width]);
                    }
                });
            }
        }
        for stored in [20_u32, 4096, 1 << 20, 1 << 31] {
            for decoded in [1_u32 << 20, 1 << 27, 1 << 31] {
                for codec in 0..3 {
                    let mut entry = [[0; 4], stored.to_le_bytes(), decoded.to_le_bytes()].concat();
                    entry.extend([0, 0, codec, 0]);
                    let what = format!("{name}: {entries:?} are {decoded} bytes in {stored}, codec {codec}");
                    survive(files, &what, &|path| {
                        for index in entries.clone() {
                            poke(path, "meta.zr", 16 + 16 * index, &entry);
                        }
                    });
                }
            }
        }
    }
}

/// A record that lies in frames which say what they like.
fn frames(name: &str, files: &Files) {
    for says in [None, Some(1_u64 << 20), Some(1 << 27), Some(1 << 31), Some(u64::MAX)] {
        for decoded in [1_u32 << 20, 1 << 27, 1 << 31] {
            for stored in [40_u32, 70_000] {
                survive(
                    files,
                    &format!("{name}: a frame of {stored} says {says:?} for {decoded}"),
                    &|path| {
                        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
                        match says {
                            Some(says) => {
                                frame.push(0xe0); // one segment, 8 bytes of content size
                                frame.extend(says.to_le_bytes());
                            }
                            None => frame.extend([0x00, 0xf8]), // a window of the largest size
                        }
                        frame.resize(stored as usize, 0x55);
                        fs::write(path.join("0.zr"), &frame).unwrap();
                        let mut entry = [[0; 4], stored.to_le_bytes(), decoded.to_le_bytes()].concat();
                        entry.extend([0, 0, 1, 0]);
                        for index in 0..19 {
                            poke(path, "meta.zr", 16 + 16 * index, &entry);
                        }
                    },
                );
            }
        }
    }
}

fn schema_and_dictionary(name: &str, files: &Files) {
    let huge: [&[u8]; 10] = [
        b"\xdf\xff\xff\xff\xff",                           // a map of 2^32 - 1
        b"\xdd\xff\xff\xff\xff",                           // an array
        b"\xdb\xff\xff\xff\xff",                           // a string
        b"\xc6\xff\xff\xff\xff",                           // bytes
        b"\xc9\xff\xff\xff\xff\x01",                       // an extension
        b"\x81\xaaitem_shape\xdd\xff\xff\xff\xff",         // the shape
        b"\x81\xaaitem_shape\xdd\x10\x00\x00\x00\x01\x01", // 2^28 dimensions
        b"\x81\xa4kind\xdb\xff\xff\xff\xff",               // a name
        b"\x81\xa5extra\xc6\xff\xff\xff\xffabc",           // an unknown key
        b"\x81\xdb\xff\xff\xff\xffkind",                   // a key
    ];
    for bytes in huge {
        survive(files, &format!("{name}: a schema of {bytes:02x?}"), &|path| {
            fs::write(path.join("schema.msgpack"), bytes).unwrap();
        });
    }
    survive(files, &format!("{name}: a schema of nothing but beginnings"), &|path| {
        fs::write(path.join("schema.msgpack"), [0x91; 50_000]).unwrap();
    });
    survive(files, &format!("{name}: a schema of a gigabyte"), &|path| {
        fs::write(path.join("schema.msgpack"), []).unwrap();
        lengthen(path, "schema.msgpack", 1 << 30);
    });
    survive(files, &format!("{name}: a dictionary of a gigabyte"), &|path| {
        fs::write(path.join("dict.zr"), []).unwrap();
        lengthen(path, "dict.zr", 1 << 30);
    });
    if let Some(dictionary) = content(files, "dict.zr") {
        for at in (4..64).step_by(4).filter(|at| at + 4 <= dictionary.len()) {
            survive(files, &format!("{name}: byte {at} of the dictionary"), &|path| {
                poke(path, "dict.zr", at as u64, &[0xff; 4]);
                // As in a store of Python: nothing is remembered that would give it away.
                let _ = fs::remove_file(path.join("check.zr"));
            });
        }
    }
}

fn checks(name: &str, files: &Files) {
    let slots = content(files, "check.zr").unwrap().first_chunk::<{ 2 * SLOT_BYTES }>().unwrap();
    let newest = CheckHeader::newest(slots).unwrap();
    for value in [0, 1, 18, 1 << 24, 1 << 32, u64::MAX - 1, u64::MAX] {
        let forged = [
            CheckHeader { synced_length: value, ..newest },
            CheckHeader { own_until: value, ..newest },
            CheckHeader { synced_length: value, own_until: value, ..newest },
            CheckHeader { sequence: value, ..newest },
        ];
        for (field, header) in forged.into_iter().enumerate() {
            survive(files, &format!("{name}: field {field} of the checks = {value}"), &|path| {
                poke(path, "check.zr", 0, &[header.encode(), header.encode()].concat());
            });
        }
    }
    survive(files, &format!("{name}: a dictionary of 4 GiB is remembered"), &|path| {
        let mut header = newest;
        header.dictionary.length = u32::MAX;
        poke(path, "check.zr", 0, &[header.encode(), header.encode()].concat());
    });
}

fn journal(name: &str, files: &Files) {
    let before = header(files);
    for after in [before, Header { length: 0, tail_offset: 0, ..before }] {
        for count in [0, 1, 1 << 19, 1 << 27, 1 << 59, u64::MAX / 32, u64::MAX] {
            for (entries, data) in [(count, 0), (0, count), (1, count), (count, 1)] {
                let header = JournalHeader { before, after, entries, data, trim: true, crc: 0 };
                survive(files, &format!("{name}: a journal of {entries} entries, {data} bytes"), &|path| {
                    fs::write(path.join("journal.zr"), header.encode()).unwrap();
                });
                // As long as it says, and nothing in it.
                if let Some(length) = header.file_bytes().filter(|&length| length <= 1 << 25) {
                    survive(files, &format!("{name}: a hollow journal of {entries}, {data}"), &|path| {
                        fs::write(path.join("journal.zr"), header.encode()).unwrap();
                        lengthen(path, "journal.zr", length);
                    });
                }
            }
        }
    }
    assert_eq!(JOURNAL_HEADER_BYTES, before.encode().len() * 4);
}

/// Entries that all name the same bytes: what is put aside is not kept as often as it is named.
fn shared_bytes(name: &str, files: &Files) {
    survive(files, &format!("{name}: 200 records share their bytes"), &|path| {
        let bytes = Random::new(1).record(400_000);
        fs::write(path.join("0.zr"), &bytes).unwrap();
        let length = (bytes.len() as u32).to_le_bytes();
        let mut entry = [[0; 4], length, length].concat();
        // Frames that none of them are.
        entry.extend([0, 0, 1, 0]);
        poke(path, "meta.zr", 16, &entry.repeat(200));
        poke(path, "meta.zr", 12, &200_u32.to_le_bytes());
        let _ = fs::remove_file(path.join("check.zr"));
    });
}

/// A header that counts what was never written: the table of version 3 is a hole to its end.
fn counted_holes(name: &str, files: &Files) {
    for length in [1_u32 << 18, 1 << 24] {
        survive(files, &format!("{name}: {length} records in a hole"), &|path| {
            poke(path, "meta.zr", 12, &length.to_le_bytes());
            lengthen(path, "meta.zr", 16 + (16 << 24));
            let _ = fs::remove_file(path.join("check.zr"));
        });
    }
}

#[test]
fn no_number_in_a_hostile_directory_makes_memory_that_its_files_do_not_hold() {
    for (name, files) in stores() {
        schema_and_dictionary(&name, &files);
        checks(&name, &files);
        if name.contains("waits") {
            continue;
        }
        header_and_table(&name, &files);
        frames(&name, &files);
        journal(&name, &files);
        shared_bytes(&name, &files);
        if header(&files).version == FormatVersion::V3 {
            counted_holes(&name, &files);
        }
    }
}
