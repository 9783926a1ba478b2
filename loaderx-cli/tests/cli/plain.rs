//! Stores without a schema, as Python writes them from plain bytes: every command works, and gives them a schema when asked.

use std::fs;
use std::path::Path;

use loaderx_core::CreateOptions;

use crate::common::{complains, json, names, prints};

/// A store of six records of four bytes, without a schema.
fn make(dir: &Path) {
    let store = CreateOptions::new().create(dir.join("plain")).unwrap();
    store.append_fixed(&(0..24).collect::<Vec<u8>>(), 4).unwrap();
}

#[test]
fn every_command_works_without_a_schema() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let run = |args: &[&str]| prints(dir.path(), args);
    let before = run(&["cat", "plain", "--json"]);
    assert!(run(&["info", "plain"]).contains("plain bytes, no schema"));
    assert!(run(&["recode", "plain", "small", "--codec", "zstd"]).contains("plain bytes, no schema"));
    assert_eq!(run(&["cat", "small", "--json"]), before);
    run(&["split", "plain", "a", "b", "--fraction", "0.5", "--in-order"]);
    run(&["merge", "a", "b", "--output", "whole"]);
    assert_eq!(run(&["cat", "whole", "--json"]), before);
    run(&["split", "plain", "c", "d", "--fraction", "0.5"]);
    assert_eq!(json(dir.path(), &["info", "c"])["records"], 3);
    run(&["export", "plain", "plain.parquet"]);
    run(&["import", "plain.parquet", "back"]);
    assert_eq!(run(&["cat", "back/plain", "--json"]), before);
    run(&["export", "plain", "files", "--format", "files"]);
    assert_eq!(fs::read(dir.path().join("files/1.bin")).unwrap(), [4, 5, 6, 7]);
    run(&["delete", "plain", "5"]);
    run(&["compact", "plain"]);
    run(&["verify", "plain"]);
    assert!(run(&["bench", "plain", "--batch-size", "2", "--seconds", "0.01"]).contains("plain copy"));
}

#[test]
fn what_the_records_are_can_be_said() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let run = |args: &[&str]| prints(dir.path(), args);
    let as_u16 = ["--dtype", "u16", "--shape", "2"];
    assert_eq!(run(&[&["cat", "plain", "1", "--json"][..], &as_u16].concat()), "[1284,1798]\n");
    run(&[&["recode", "plain", "typed"][..], &as_u16].concat());
    assert_eq!(json(dir.path(), &["info", "typed"])["streams"][0]["item_shape"], serde_json::json!([2]));
    run(&[&["export", "plain", "x.npy"][..], &as_u16].concat());
    run(&["import", "x.npy", "again"]);
    assert_eq!(run(&["cat", "again", "--json"]), run(&["cat", "typed", "--json"]));
    run(&[&["merge", "plain", "typed", "-o", "both"][..], &as_u16].concat());
    assert_eq!(json(dir.path(), &["info", "both"])["records"], 12);
    run(&["recode", "plain", "rows", "--dtype", "u8", "--shape", "2", "--ragged"]);
    assert_eq!(run(&["cat", "rows", "1", "--json"]), "[[4,5],[6,7]]\n");
    let drawn = run(&["cat", "plain", "0", "--image", "--dtype", "u8", "--shape", "2,2"]);
    assert!(drawn.starts_with("0: 2 x 2\n"), "{drawn}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    prints(dir.path(), &["recode", "plain", "typed", "--dtype", "u8", "--shape", "4"]);
    let before = names(dir.path());
    let refused = |args: &[&str]| complains(dir.path(), args);
    assert!(refused(&["export", "plain", "x.npy"]).contains("--dtype"));
    for command in [&["recode", "plain", "x"][..], &["export", "plain", "x.npy"], &["cat", "plain"]] {
        let text = refused(&[command, &["--dtype", "u8", "--shape", "3"]].concat());
        assert!(text.contains("4 bytes are no record of dense u8 [3]"), "{text}");
    }
    for command in [&["recode", "typed", "x"][..], &["export", "typed", "x.npy"], &["cat", "typed"]] {
        let text = refused(&[command, &["--dtype", "i8", "--shape", "4"]].concat());
        assert!(text.contains("dense u8 [4], not dense i8 [4]"), "{text}");
    }
    assert!(refused(&["merge", "plain", "typed", "-o", "x"]).contains("--dtype"));
    assert!(refused(&["recode", "plain", "x", "--shape", "4"]).contains("--dtype"));
    assert!(refused(&["recode", "plain", "x", "--dtype", "u7"]).contains("u7"));
    let files = ["export", "plain", "x", "--format", "files", "--dtype", "u8"];
    assert!(refused(&files).contains("leave out --dtype"));
    assert_eq!(names(dir.path()), before);
}
