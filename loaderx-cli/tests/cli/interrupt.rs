//! Whatever ends a conversion half-way leaves nothing that looks like a store, and the next run cleans up.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::common::{command, names, prints};

/// An IDX file that takes a while: large, and compressed at a high level.
fn large(dir: &Path) {
    let mut file = File::create(dir.join("x.idx")).unwrap();
    file.write_all(&[0, 0, 8, 2]).unwrap();
    file.write_all(&4096_u32.to_be_bytes()).unwrap();
    file.write_all(&65_536_u32.to_be_bytes()).unwrap();
    // Sparse: 256 MiB of zeros that take no room.
    file.set_len(12 + 4096 * 65_536).unwrap();
}

/// Starts an import and waits until it has begun to write.
fn begin(dir: &Path) -> Child {
    started(dir, &["import", "x.idx", "store", "--codec", "zstd", "--level", "19"], "store")
}

/// Starts the program and waits until it has begun to write the store `dest`.
fn started(dir: &Path, args: &[&str], dest: &str) -> Child {
    let mut child = command(dir, args).spawn().unwrap();
    assert!(appears(&mut child, &dir.join(format!(".{dest}.loaderx-partial/data/meta.zr"))));
    child
}

/// Waits until the program has made `path`; whether it did before it ended.
fn appears(child: &mut Child, path: &Path) -> bool {
    comes_to_pass(child, || path.exists())
}

/// Waits until the program has done it; whether it did before it ended.
fn comes_to_pass(child: &mut Child, done: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !done() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "never began");
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Runs the program and presses Ctrl-C as soon as `path` is there, until once that came before its end, and gives what it
/// printed then. `again` makes way for another try.
fn interrupted(dir: &Path, args: &[&str], path: &Path, mut again: impl FnMut()) -> String {
    let mut tries = 0;
    loop {
        let mut child = command(dir, args).spawn().unwrap();
        if appears(&mut child, path) {
            signal(&child, "INT");
        }
        let output = child.wait_with_output().unwrap();
        if output.status.code() != Some(0) {
            assert_eq!(output.status.code(), Some(130), "{args:?}");
            return String::from_utf8(output.stderr).unwrap();
        }
        tries += 1;
        assert!(tries < 20, "{args:?}: Ctrl-C did not end it");
        again();
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn an_import_that_ctrl_c_ends_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    large(dir.path());
    let child = begin(dir.path());
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing was kept"));
    assert_eq!(names(dir.path()), ["x.idx"]);
}

#[test]
fn a_store_that_is_written_anew_is_left_as_it_was_by_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    large(dir.path());
    prints(dir.path(), &["import", "x.idx", "store", "--codec", "zstd", "--level", "1"]);
    let slow = ["--codec", "zstd", "--level", "19"];
    let recode = [&["recode", "store", "new"], &slow[..]].concat();
    let merge = [&["merge", "store", "store", "--output", "new"], &slow[..]].concat();
    let split = [&["split", "store", "new", "rest"], &slow[..]].concat();
    for args in [recode, merge, split] {
        let child = started(dir.path(), &args, "new");
        signal(&child, "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{args:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("nothing was kept"), "{args:?}");
        assert_eq!(names(dir.path()), ["store", "x.idx"], "{args:?}");
        prints(dir.path(), &["verify", "store"]);
    }
}

#[test]
fn an_export_that_ctrl_c_ends_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Numbers, one a record: no format writes them all at once.
    let mut file = File::create(dir.path().join("x.idx")).unwrap();
    file.write_all(&[0, 0, 8, 1]).unwrap();
    file.write_all(&(1_u32 << 21).to_be_bytes()).unwrap();
    file.set_len(8 + (1 << 21)).unwrap();
    drop(file);
    prints(dir.path(), &["import", "x.idx", "set/a", "--codec", "raw"]);
    let single: [&[&str]; 3] = [
        &["export", "set/a", "out", "--format", "npy"],
        &["export", "set/a", "out", "--format", "parquet"],
        &["export", "set/a", "out", "--format", "files"],
    ];
    let all: &[&str] = &["export", "set", "out", "--format", "npy"];
    let partial = dir.path().join(".out.loaderx-partial/data");
    for args in single.into_iter().chain([all]) {
        let errors = interrupted(dir.path(), args, &partial, || {
            let done = dir.path().join("out");
            if done.is_dir() {
                std::fs::remove_dir_all(done).unwrap()
            } else {
                std::fs::remove_file(done).unwrap()
            }
        });
        assert!(errors.contains("nothing was kept"), "{args:?}: {errors}");
        assert_eq!(names(dir.path()), ["set", "x.idx"], "{args:?}");
    }
    prints(dir.path(), &["verify", "set"]);
}

#[test]
fn a_store_whose_compaction_ctrl_c_ends_is_whole_and_can_be_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // 64 MiB, each record of a byte of its own.
    let mut file = File::create(dir.join("x.idx")).unwrap();
    file.write_all(&[0, 0, 8, 2]).unwrap();
    file.write_all(&1024_u32.to_be_bytes()).unwrap();
    file.write_all(&65_536_u32.to_be_bytes()).unwrap();
    for record in 0..1024_u16 {
        file.write_all(&[u8::try_from(record % 251).unwrap(); 65_536]).unwrap();
    }
    drop(file);
    prints(dir, &["import", "x.idx", "store", "--codec", "raw"]);
    let mut caught = 0;
    for round in 0..6 {
        // A small hole: the records behind it move over bytes that others still need, and so through the journal.
        prints(dir, &["delete", "store", &format!("{}..{}", 8 * round, 8 * round + 8)]);
        prints(dir, &["export", "store", "before.npy"]);
        let (journal, chunk) = (dir.join("store/journal.zr"), dir.join("store/0.zr"));
        let changed = || chunk.metadata().unwrap().modified().unwrap();
        let before = changed();
        let mut child = command(dir, &["compact", "store"]).spawn().unwrap();
        // While the journal is written, and while it is carried out.
        let begun = || if round % 2 == 0 { journal.exists() } else { changed() != before };
        if comes_to_pass(&mut child, begun) {
            signal(&child, "INT");
        }
        let output = child.wait_with_output().unwrap();
        if output.status.code() == Some(130) {
            caught += 1;
            assert!(String::from_utf8(output.stderr).unwrap().contains("the store is whole"));
        } else {
            assert_eq!(output.status.code(), Some(0));
        }

        prints(dir, &["compact", "store"]);
        prints(dir, &["verify", "store"]);
        prints(dir, &["export", "store", "after.npy"]);
        let content = |name: &str| std::fs::read(dir.join(name)).unwrap();
        assert!(content("before.npy") == content("after.npy"), "compacting has changed records");
        let records = (content("after.npy").len() - 128) as u64;
        assert_eq!(dir.join("store/0.zr").metadata().unwrap().len(), records, "garbage is still there");
        std::fs::remove_file(dir.join("before.npy")).unwrap();
        std::fs::remove_file(dir.join("after.npy")).unwrap();
    }
    assert!(caught > 0, "Ctrl-C never came before the end");
}

#[test]
fn what_a_killed_import_leaves_is_no_store_and_the_next_run_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    large(dir.path());
    let mut child = begin(dir.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(names(dir.path()), [".store.loaderx-partial", "x.idx"]);
    std::fs::write(dir.path().join("x.idx"), [0, 0, 8, 1, 0, 0, 0, 2, 5, 6]).unwrap();
    prints(dir.path(), &["import", "x.idx", "store"]);
    assert_eq!(names(dir.path()), ["store", "x.idx"]);
    assert_eq!(prints(dir.path(), &["cat", "store"]), "0: 5\n1: 6\n");
}

#[test]
fn ctrl_c_is_heard_while_a_table_is_only_being_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("x.csv");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let child = command(dir.path(), &["import", "x.csv", "store", "--format", "csv"]).spawn().unwrap();
    // Opens as soon as the program reads. It never comes to the table's end, however far it is when it is interrupted.
    let mut input = File::options().write(true).open(&fifo).unwrap();
    input.write_all(b"a,b\n").unwrap();
    let rows = "1,2\n".repeat(1 << 12);
    input.write_all(rows.as_bytes()).unwrap();
    signal(&child, "INT");
    let started = Instant::now();
    while input.write_all(rows.as_bytes()).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(60), "it was not heard");
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(names(dir.path()), ["x.csv"]);
}
