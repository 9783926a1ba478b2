//! Inputs larger than the memory that there is for them.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use crate::common::{json, run};

const COLUMNS: usize = 1 << 20;
const ROWS: u64 = 600;

/// A sparse npy file of 600 records of 1 MiB with `mark` at its first and last element.
fn sparse_npy(path: &Path, mark: u8) {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({ROWS}, {COLUMNS}), }}");
    let mut file = File::create(path).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
    file.write_all(format!("{header:117}\n").as_bytes()).unwrap();
    file.write_all(&[mark]).unwrap();
    file.set_len(128 + ROWS * COLUMNS as u64).unwrap();
    file.seek(SeekFrom::End(-1)).unwrap();
    file.write_all(&[mark]).unwrap();
}

#[test]
fn an_array_larger_than_the_memory_that_there_is_comes_in() {
    let dir = tempfile::tempdir().unwrap();
    sparse_npy(&dir.path().join("x.npy"), 5);
    // The whole address space of the program, its code included, is less than half of the array.
    let script = format!(
        "ulimit -v 300000; exec {} import x.npy x --codec zstd --level 1",
        env!("CARGO_BIN_EXE_loaderx")
    );
    let output = Command::new("sh").current_dir(dir.path()).args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(dir.path(), &["info", "x"])["records"], ROWS);
    for (record, first, last) in [("0", 5, 0), ("300", 0, 0), ("599", 0, 5)] {
        let mut bytes = vec![0; COLUMNS];
        (bytes[0], bytes[COLUMNS - 1]) = (first, last);
        assert!(run(dir.path(), &["cat", "x", record, "--raw"]).stdout == bytes, "{record}");
    }
}
