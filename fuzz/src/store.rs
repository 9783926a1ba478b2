//! Targets that open a store in memory.

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::{Class, Fault, MemoryDisk};
use loaderx_core::store::repair_in;
use loaderx_core::{Codec, CreateOptions, OpenOptions, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash::{self, Outcome};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;

/// The files of a store, as [`directory`] numbers them.
const FILES: [&str; 8] =
    ["meta.zr", "0.zr", "1.zr", "check.zr", "schema.msgpack", "dict.zr", "journal.zr", "lock.zr"];

/// Files as the input of [`directory`]: each its number, its length (u16) and its bytes.
#[must_use]
pub fn pack(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut data = vec![0];
    for (name, bytes) in files {
        let Some(number) = FILES.iter().position(|file| file == name) else { continue };
        let length = u16::try_from(bytes.len()).expect("a small file");
        data.push(u8::try_from(number).expect("few files"));
        data.extend(length.to_le_bytes());
        data.extend(bytes);
    }
    data
}

/// A whole directory of arbitrary files. The first byte says which checksums are made to fit.
pub fn directory(data: &[u8]) {
    let Some((&fix, mut rest)) = data.split_first() else { return };
    let disk = MemoryDisk::new();
    while let [number, l0, l1, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*l0, *l1])).min(after.len());
        let (bytes, after) = after.split_at(length);
        let name = FILES[usize::from(*number) % FILES.len()];
        let mut bytes = bytes.to_vec();
        if name == "check.zr" && fix & 1 == 1 {
            seal_slots(&mut bytes);
        }
        if name == "journal.zr" && fix & 2 == 2 {
            seal_journal(&mut bytes);
        }
        disk.put(name, &bytes);
        rest = after;
    }
    exercise(&disk);
}

/// Does everything that can be done to a store, whatever its files hold. Errors are welcome, panics are not.
fn exercise(disk: &MemoryDisk) {
    for verify in [false, true] {
        let names = disk.file_names();
        if let Ok(store) = OpenOptions::new().verify(verify).open_in(disk.directory()) {
            read_all(&store);
        }
        assert_eq!(disk.file_names(), names, "reading made or removed a file");
    }
    let repaired = disk.fork();
    if repair_in(repaired.directory()).is_ok() {
        let store = OpenOptions::new().open_in(repaired.directory()).expect("a repaired store opens");
        read_all(&store);
        drop(store);
        let store = OpenOptions::new().writable(true).open_in(repaired.directory());
        append(&repaired, &store.expect("a repaired store opens for writing"));
    }
    let Ok(mut store) = OpenOptions::new().writable(true).open_in(disk.directory()) else { return };
    read_all(&store);
    append(disk, &store);
    let _ = store.delete(&[0]);
    let _ = store.compact();
    let _ = store.sync();
    drop(store);
    if let Ok(store) = OpenOptions::new().open_in(disk.directory()) {
        read_all(&store);
    }
}

/// An append is read back, and makes the chunks longer by its own bytes at most.
fn append(disk: &MemoryDisk, store: &Store) {
    let before = chunk_bytes(disk);
    if let Ok(first) = store.append_fixed(b"appended", 8) {
        assert_eq!(store.get(first).expect("what was just appended"), b"appended");
    }
    let after = chunk_bytes(disk);
    assert!(after <= before + 8, "an append of 8 bytes made {before} bytes of chunks {after}");
}

fn chunk_bytes(disk: &MemoryDisk) -> usize {
    let names = disk.file_names();
    let chunks = names.iter().filter(|name| name.as_bytes()[0].is_ascii_digit());
    chunks.map(|name| disk.content(name).expect("a listed file").len()).sum()
}

fn read_all(store: &Store) {
    // A forged header may count millions; the first and the last are as good as all.
    let length = store.len();
    let indices = (0..length.min(40)).chain(length.saturating_sub(4)..length);
    for index in indices {
        if let Ok(record) = store.get(index) {
            let mut lengths = Vec::new();
            store.lengths(&[index], &mut lengths).expect("a record that can be read has a length");
            assert_eq!(lengths, [record.len() as u64]);
        }
    }
    if length < 10_000 {
        let _ = store.verify();
        let _ = store.stats();
    }
}

/// A journal beside a sound store: it is carried out, or refused; afterwards the store is sound or says so.
pub fn journal(data: &[u8]) {
    let operations = [Operation::Append(Random::new(1).records(9, 4, 40)), Operation::Delete(vec![2])];
    let (disk, _) = crash::prepare(&CreateOptions::new(), &operations);
    let mut bytes = data.to_vec();
    if data.len() >= 64 {
        // The state of the store that the journal has to fit, so that more than the header is reached.
        bytes[8..24].copy_from_slice(&disk.content("meta.zr").expect("the store's table")[..16]);
        seal_journal(&mut bytes);
    }
    disk.put("journal.zr", &bytes);
    exercise(&disk);
}

/// Operations, interrupted by a fault, against a vector.
///
/// The first byte chooses the store, the second the fault, the third its place; then come operations of two bytes each.
pub fn operations(data: &[u8]) {
    let [kind, fault, place, rest @ ..] = data else { return };
    let codec = if kind & 1 == 0 { Codec::Raw } else { Codec::zstd() };
    let format = if kind & 2 == 0 { FormatVersion::V3 } else { FormatVersion::V4 };
    let options = CreateOptions::new().codec(codec).format(format);
    let base = [Operation::Append(Random::new(u64::from(*kind)).records(6, 1, 40))];
    let (disk, model) = crash::prepare(&options, &base);
    let place = u64::from(*place) + 1;
    let power_cut = fault % 6 >= 3;
    disk.inject(match fault % 3 {
        0 => Fault::stop_at(place),
        1 => Fault::tear_at(place),
        _ => Fault::full_from(place),
    });
    let mut outcome = Outcome::start(&model);
    if let Ok(mut store) = crash::open_writable(&disk) {
        let operations = decode(rest, model.records.len());
        outcome.run(&mut store, &operations);
    }
    if power_cut {
        let lost = Random::new(u64::from(*fault)).below(128);
        disk.power_cut(|unsynced| {
            let class = Class::ALL.iter().position(|class| *class == unsynced.class).expect("a known class");
            lost >> class & 1 == 1
        });
    } else {
        disk.restart();
    }
    let store = crash::open_writable(&disk).expect("the store opens after any crash");
    let found =
        if power_cut { outcome.allows_after_power_cut(&store) } else { outcome.allows_after_kill(&store) };
    let mut model: Model = found.unwrap_or_else(|wrong| panic!("{wrong}"));
    model.append(&[b"after".to_vec()]);
    store.append_fixed(b"after", 5).expect("an append after a crash");
    drop(store);
    let store = OpenOptions::new().verify(true).open_in(disk.directory()).expect("the store opens again");
    model.compare(&store).unwrap_or_else(|wrong| panic!("{wrong}"));
}

fn decode(bytes: &[u8], mut length: usize) -> Vec<Operation> {
    bytes
        .chunks_exact(2)
        .take(24)
        .map(|pair| {
            let (what, seed) = (pair[0], u64::from(pair[1]));
            match what % 5 {
                0 if length > 0 => {
                    let mut indices: Vec<u64> =
                        (0..1 + seed % 4).map(|i| (seed + 7 * i) % length as u64).collect();
                    indices.sort_unstable();
                    indices.dedup();
                    length -= indices.len();
                    Operation::Delete(indices)
                }
                1 => Operation::Compact,
                2 => Operation::Sync,
                _ => {
                    let count = 1 + usize::from(what) % 4;
                    length += count;
                    Operation::Append(Random::new(seed).records(count, 1, 50))
                }
            }
        })
        .collect()
}

/// Makes the checksums of both header slots of `check.zr` fit.
pub(crate) fn seal_slots(bytes: &mut [u8]) {
    for slot in bytes.chunks_exact_mut(64).take(2) {
        slot[..4].copy_from_slice(b"ZCHK");
        slot[4..6].copy_from_slice(&1_u16.to_le_bytes());
        let crc = crc32fast::hash(&slot[..60]);
        slot[60..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Makes magic, version and checksum of a journal fit, and its counts if they can.
fn seal_journal(bytes: &mut [u8]) {
    if bytes.len() < 64 {
        return;
    }
    bytes[..4].copy_from_slice(b"ZJNL");
    bytes[4..6].copy_from_slice(&1_u16.to_le_bytes());
    let behind = (bytes.len() - 64) as u64;
    let entries = u64::from(bytes[40]).min(behind / 32);
    bytes[40..48].copy_from_slice(&entries.to_le_bytes());
    bytes[48..56].copy_from_slice(&(behind - 32 * entries).to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..60]);
    crc.update(&bytes[64..]);
    let crc = crc.finalize();
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
}
