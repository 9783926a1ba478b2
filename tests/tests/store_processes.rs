//! Real processes: one writer, readers beside it, delete and compact alone, rights of other users, deaths.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use loaderx_core::{CreateOptions, ErrorKind, Store};
use loaderx_tests::directory::{listing, snapshot};
use loaderx_tests::process::{Running, record_of};
use tempfile::TempDir;

const CHILD: &str = env!("CARGO_BIN_EXE_store_child");

fn child(arguments: &[&str]) -> Running {
    Running::start(CHILD, arguments)
}

/// A store of `count` records in a new folder that every user can enter.
fn store(count: u64) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("x");
    let store = CreateOptions::new().create(&path).unwrap();
    let records: Vec<Vec<u8>> = (0..count).map(record_of).collect();
    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store.sync().unwrap();
    (dir, path)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn once(path: &Path, what: &str) -> String {
    child(&["once", text(path), what]).finish().concat()
}

#[test]
fn a_second_writing_process_is_refused_until_the_first_has_gone() {
    let (_dir, path) = store(5);
    for kill in [false, true] {
        let mut first = child(&["hold", text(&path), "write"]);
        assert!(first.line().starts_with("ok "));
        let error = Store::open_writable(&path).unwrap_err();
        assert!(error.is_locked(), "{error}");
        assert!(error.to_string().contains(text(&path)), "{error}");
        assert!(error.hint().is_some());
        // Reading is possible all the while, here and elsewhere.
        assert_eq!(Store::open(&path).unwrap().get(4).unwrap(), record_of(4));
        assert!(once(&path, "read").starts_with("ok "));
        if kill {
            first.kill();
        } else {
            first.finish();
        }
        drop(Store::open_writable(&path).unwrap());
    }
}

#[test]
fn of_two_processes_that_start_to_write_at_once_one_wins() {
    for round in 0..15 {
        let (_dir, path) = store(3);
        let count = 400 + round;
        let children = [0, 1].map(|_| child(&["grow", text(&path), &count.to_string()]));
        let lines: Vec<String> = children.into_iter().map(|child| child.finish().concat()).collect();
        let won = lines.iter().filter(|line| **line == format!("ok {count}")).count();
        let refused = lines.iter().filter(|line| line.starts_with("error Locked")).count();
        // The second may come so late that the first is done; never may both write.
        assert!(won >= 1 && won + refused == 2, "{lines:?}");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.len(), count);
        for index in 0..count {
            assert!(store.get(index).unwrap() == record_of(index), "record {index} of round {round}");
        }
    }
}

#[test]
fn readers_see_what_another_process_commits_and_nothing_else() {
    let (_dir, path) = store(1);
    let count = "30000";
    let mut readers = [0, 1].map(|_| child(&["watch", text(&path), count]));
    for reader in &mut readers {
        assert_eq!(reader.line(), "ready 1");
    }
    let writer = child(&["grow", text(&path), count]);
    assert_eq!(writer.finish(), [format!("ok {count}")]);
    for reader in readers {
        let end = reader.finish().concat();
        assert!(end.starts_with(&format!("ok {count} ")), "{end}");
        let changes: u64 = end.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(changes > 1, "the reader saw the store only at its end: {end}");
    }
}

#[test]
fn delete_and_compact_refuse_while_another_process_has_the_store_open() {
    let (_dir, path) = store(10);
    drop(Store::open_writable(&path).unwrap());
    let mut reader = child(&["hold", text(&path), "read"]);
    assert_eq!(reader.line(), "ok 10");
    let before = snapshot_without_checks(&path);
    let mut store = Store::open_writable(&path).unwrap();
    for error in [store.delete(&[0]).unwrap_err(), store.compact().map(drop).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        assert!(error.to_string().contains(text(&path)) && error.hint().is_some(), "{error}");
    }
    assert!(snapshot_without_checks(&path) == before, "a refused delete or compact changed the store");
    // The handle still works.
    store.append_fixed(b"more", 4).unwrap();
    assert_eq!(store.get(10).unwrap(), b"more");

    reader.finish();
    assert_eq!(store.delete(&[0]).unwrap(), 1);
    store.compact().unwrap();
    assert_eq!(store.get(0).unwrap(), b"more");
    // And while this handle is open, another process cannot: it is the writer.
    assert!(once(&path, "delete").starts_with("error Locked"));
}

/// What holds records; `check.zr` may say that a writer has been here.
fn snapshot_without_checks(path: &Path) -> loaderx_tests::directory::Snapshot {
    let mut files = snapshot(path);
    files.remove("check.zr");
    files
}

#[test]
fn what_killed_processes_leave_hinders_nobody() {
    let (_dir, path) = store(20);
    let known: BTreeSet<&str> = ["0.zr", "check.zr", "lock.zr", "meta.zr"].into();
    for how in ["read", "write", "read"] {
        let mut first = child(&["hold", text(&path), how]);
        assert!(first.line().starts_with("ok "));
        first.kill();
        let mut store = Store::open_writable(&path).unwrap();
        let length = store.len();
        store.append_fixed(b"after", 5).unwrap();
        assert_eq!(store.delete(&[0]).unwrap(), 1);
        store.compact().unwrap();
        assert_eq!(store.len(), length);
        drop(store);
        assert!(once(&path, "read").starts_with("ok "));
        let names = listing(&path);
        let names: BTreeSet<&str> = names.keys().map(String::as_str).collect();
        assert!(names.is_subset(&known), "{names:?}");
    }
}

/// Runs the child as the user `nobody`, from a copy that `nobody` can read; `None`, with a message, where that cannot be.
fn as_nobody(dir: &TempDir, arguments: &[&str]) -> Option<String> {
    let program = dir.path().join("store_child");
    if !program.exists() {
        fs::copy(CHILD, &program).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    let possible = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !possible {
        println!("SKIPPED: only root can start a process of another user, and with setpriv");
        return None;
    }
    Some(Running::spawn(command.arg(program).args(arguments)).finish().concat())
}

#[test]
fn a_user_without_write_permission_reads_and_is_refused_to_write() {
    let (dir, path) = store(30);
    let bytes: usize = (0..30).map(|index| record_of(index).len()).sum();
    let before = listing(&path);
    let Some(read) = as_nobody(&dir, &["once", text(&path), "read"]) else { return };
    assert_eq!(read, format!("ok {bytes}"));
    for what in ["append", "delete", "compact"] {
        let line = as_nobody(&dir, &["once", text(&path), what]).unwrap();
        assert!(line.starts_with("error ReadOnly") && line.contains(text(&path)), "{what}: {line}");
    }
    // Without read permission either, the error says which file.
    fs::set_permissions(path.join("meta.zr"), Permissions::from_mode(0o600)).unwrap();
    let line = as_nobody(&dir, &["once", text(&path), "read"]).unwrap();
    assert!(line.starts_with("error ReadOnly") && line.contains("meta.zr"), "{line}");
    assert_eq!(listing(&path), before);
}

#[test]
fn a_reader_of_another_user_holds_off_a_delete_like_any_other() {
    let (dir, path) = store(4);
    if as_nobody(&dir, &["once", text(&path), "read"]).is_none() {
        return;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    let mut reader =
        Running::spawn(command.arg(dir.path().join("store_child")).args(["hold", text(&path), "read"]));
    assert_eq!(reader.line(), "ok 4");
    let mut store = Store::open_writable(&path).unwrap();
    assert!(store.delete(&[1]).unwrap_err().is_locked());
    reader.finish();
    assert_eq!(store.delete(&[1]).unwrap(), 1);
}

#[test]
fn a_read_only_file_system_is_read_without_a_lock_file() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = loaderx_tests::mount::Tmpfs::new(dir.path(), "16m") else { return };
    let path = dir.path().join("x");
    let created = CreateOptions::new().create(&path).unwrap();
    created.append_fixed(b"abcdef", 2).unwrap();
    drop(created);
    // As a copied data set comes: without the writer's lock file.
    fs::remove_file(path.join("lock.zr")).unwrap();
    mount.make_read_only();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.get(1).unwrap(), b"cd");
    assert!(store.verify().unwrap().is_sound());
    drop(store);
    let error = Store::open_writable(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    assert!(error.path().is_some());
}
