//! The worked example of docs/format.md is what the code writes, byte for byte.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use loaderx_core::io::memory::{Fault, MemoryDisk};
use loaderx_core::{CreateOptions, DType, OpenOptions, Schema};

/// The hex blocks of the document by the name in their first line, such as "```hex meta.zr after sync".
fn blocks() -> BTreeMap<String, Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = BTreeMap::new();
    for block in text.split("```hex ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (body, _) = rest.split_once("```").unwrap();
        let bytes = body
            .lines()
            .map(|line| line.split(';').next().unwrap())
            .flat_map(str::split_whitespace)
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        assert!(blocks.insert(name.trim().to_owned(), bytes).is_none(), "two blocks are named {name}");
    }
    blocks
}

fn hex(bytes: &[u8]) -> String {
    let rows: Vec<String> = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
        .collect();
    rows.join("\n")
}

#[test]
fn the_worked_example_is_what_the_code_writes() {
    let mut written = BTreeMap::new();
    let mut note = |disk: &MemoryDisk, file: &str, when: &str| {
        written.insert(format!("{file} {when}"), disk.content(file).unwrap());
    };

    let disk = MemoryDisk::new();
    let schema = Schema::dense(DType::U8, &[4]).unwrap();
    let store = CreateOptions::new().schema(schema).create_in(disk.directory()).unwrap();
    note(&disk, "meta.zr", "after create");
    note(&disk, "check.zr", "after create");
    note(&disk, "schema.msgpack", "after create");

    store.append(b"abcdwxyz1234", &[0, 4, 8]).unwrap();
    store.sync().unwrap();
    for file in ["0.zr", "meta.zr", "check.zr"] {
        note(&disk, file, "after append and sync");
    }
    drop(store);

    // A delete that is killed when its journal is complete and nothing of it has been done.
    let mut store = OpenOptions::new().writable(true).open_in(disk.directory()).unwrap();
    for k in 1.. {
        let trial = disk.fork();
        let mut store = OpenOptions::new().writable(true).open_in(trial.directory()).unwrap();
        trial.inject(Fault::stop_at(k));
        store.delete(&[0]).unwrap_err();
        let next = trial.trace().last().unwrap().clone();
        if next.contains("of meta.zr") {
            note(&trial, "journal.zr", "of the delete");
            break;
        }
    }
    store.delete(&[0]).unwrap();
    note(&disk, "meta.zr", "after the delete");
    store.compact().unwrap();
    note(&disk, "0.zr", "after compact");
    note(&disk, "meta.zr", "after compact");

    let documented = blocks();
    for (name, bytes) in &written {
        let block = documented.get(name);
        assert!(block == Some(bytes), "the document has no block {name:?} with\n{}", hex(bytes));
    }
    assert_eq!(documented.len(), written.len(), "a block of the document is not checked");
}
