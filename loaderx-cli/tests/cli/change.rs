//! Deleting, compacting, checking, repairing and rewriting stores.

use std::fs;
use std::path::Path;

use crate::common::{complains, json, names, prints, run};

/// What record `id` of stream `text` says.
fn text(id: u32) -> String {
    format!("{}, and this is number {id}", "words that every record of this stream has in common ".repeat(3))
}

/// A dataset of `id` and `text` with so many records.
fn make(dir: &Path, name: &str, records: u32) {
    let lines: String = (0..records).map(|i| format!("{{\"id\":{i},\"text\":\"{}\"}}\n", text(i))).collect();
    fs::write(dir.join("input.jsonl"), lines).unwrap();
    prints(dir, &["import", "input.jsonl", name]);
    fs::remove_file(dir.join("input.jsonl")).unwrap();
}

fn ids(dir: &Path, name: &str) -> Vec<u32> {
    prints(dir, &["cat", &format!("{name}/id"), "--json"]).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_stream_that_has_lost_its_record_table_is_an_error_and_not_a_stream_less() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 3);
    fs::remove_file(dir.path().join("d/text/meta.zr")).unwrap();
    for args in [&["info", "d"][..], &["verify", "d"], &["repair", "d/text"], &["export", "d", "x.parquet"]] {
        let complaint = complains(dir.path(), args);
        assert!(complaint.contains("d/text/meta.zr"), "{args:?}: {complaint}");
        assert!(complaint.contains("restore meta.zr from a copy"), "{args:?}: {complaint}");
    }
}

#[test]
fn deleted_records_are_gone_from_every_stream_and_compact_frees_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 10);
    assert!(complains(dir.path(), &["delete", "d", "9", "10"]).contains("no record 10: the store has 10"));
    assert_eq!(ids(dir.path(), "d").len(), 10);
    let removed = json(dir.path(), &["delete", "d", "1", "4..6"]);
    assert_eq!((removed["removed"].as_u64(), removed["records"].as_u64()), (Some(3), Some(7)));
    let left = ids(dir.path(), "d");
    let texts = prints(dir.path(), &["cat", "d/text", "--json"]);
    for (&id, line) in left.iter().zip(texts.lines()) {
        assert_eq!(line, format!("\"{}\"", text(id)));
    }
    let mut sorted = left.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 2, 3, 6, 7, 8, 9]);
    assert!(json(dir.path(), &["info", "d"])["streams"][1]["garbage_bytes"].as_u64().unwrap() > 0);
    prints(dir.path(), &["compact", "d"]);
    assert_eq!(json(dir.path(), &["info", "d"])["streams"][1]["garbage_bytes"], 0);
    assert_eq!(ids(dir.path(), "d"), left);
}

#[test]
fn verify_tells_sound_faulty_and_missing_apart_and_repair_takes_the_faults_out() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 10);
    assert_eq!(run(dir.path(), &["verify", "d"]).status.code(), Some(0));
    assert_eq!(run(dir.path(), &["verify", "none"]).status.code(), Some(2));
    let chunk = dir.path().join("d/text/0.zr");
    let mut bytes = fs::read(&chunk).unwrap();
    bytes[text(0).len() + 5] ^= 1;
    fs::write(&chunk, bytes).unwrap();
    let output = run(dir.path(), &["verify", "d", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["sound"], &report["stores"][0]["sound"]), (&false.into(), &true.into()));
    assert_eq!(report["stores"][1]["faults"][0]["record"], 1);
    assert!(complains(dir.path(), &["repair", "d"]).contains("d/text"));
    let repaired = json(dir.path(), &["repair", "d/text"]);
    assert_eq!((repaired["records"].as_u64(), &repaired["removed"]), (Some(9), &serde_json::json!([1])));
    assert_eq!(run(dir.path(), &["verify", "d/text"]).status.code(), Some(0));
    // The streams are unequal now, which is said; the same record taken out of the other makes them fit again.
    assert!(complains(dir.path(), &["info", "d"]).contains("\"text\" has 9"));
    prints(dir.path(), &["delete", "d/id", "1"]);
    assert_eq!(json(dir.path(), &["info", "d"])["records"], 9);
}

#[test]
fn recoding_changes_the_codec_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 3000);
    let before = prints(dir.path(), &["cat", "d", "--json"]);
    for codec in ["zstd", "zstd_dict", "auto", "raw"] {
        let report = prints(dir.path(), &["recode", "d", codec, "--codec", codec]);
        assert!(codec != "auto" || report.contains("was chosen on a sample"), "{report}");
        assert_eq!(prints(dir.path(), &["cat", codec, "--json"]), before, "{codec}");
        assert_eq!(run(dir.path(), &["verify", codec]).status.code(), Some(0));
    }
    let size = |name: &str| json(dir.path(), &["info", name])["streams"][1]["stored_bytes"].as_u64().unwrap();
    assert!(size("zstd_dict") < size("raw") / 2, "{} {}", size("zstd_dict"), size("raw"));
    let trained = json(dir.path(), &["train-dict", "d/text", "--output", "text.dict"]);
    let bytes = fs::metadata(dir.path().join("text.dict")).unwrap().len();
    assert_eq!(trained["dictionary_bytes"].as_u64(), Some(bytes));
    // Raw, and zstd without and with the dictionary, each of these with raw and with compressed literals.
    assert_eq!(trained["trials"].as_array().unwrap().len(), 5);
}

#[test]
fn parts_that_were_split_make_the_whole_again() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 100);
    prints(dir.path(), &["split", "d", "train", "valid", "--fraction", "0.8", "--seed", "7"]);
    let (train, valid) = (ids(dir.path(), "train"), ids(dir.path(), "valid"));
    assert_eq!((train.len(), valid.len()), (80, 20));
    prints(dir.path(), &["merge", "train", "valid", "--output", "whole"]);
    let mut whole = ids(dir.path(), "whole");
    assert_eq!(whole, [train.clone(), valid].concat());
    whole.sort_unstable();
    assert_eq!(whole, (0..100).collect::<Vec<_>>());
    prints(dir.path(), &["split", "d", "t2", "v2", "--fraction", "0.8", "--seed", "7"]);
    assert_eq!(ids(dir.path(), "t2"), train);
    prints(dir.path(), &["split", "d", "head", "tail", "--fraction", "0.25", "--in-order"]);
    assert_eq!(ids(dir.path(), "head"), (0..25).collect::<Vec<_>>());
    assert_eq!(ids(dir.path(), "tail"), (25..100).collect::<Vec<_>>());
    assert!(complains(dir.path(), &["split", "d", "a", "b", "--fraction", "1.5"]).contains("1.5"));
    assert!(complains(dir.path(), &["merge", "d", "d/id", "-o", "x"]).contains("streams"));
    assert!(!names(dir.path()).iter().any(|name| name.starts_with('.') || name == "a" || name == "x"));
}

#[test]
fn bench_measures_the_gather_and_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "d", 100);
    let report = json(dir.path(), &["bench", "d/text", "--seconds", "0.05", "--batch-size", "16"]);
    let rows = |report: &serde_json::Value| {
        let rows = report["measurements"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["bytes_per_second"].as_f64().unwrap() > 0.0));
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&report), ["gather, warm", "plain copy"]);
    assert!(report["warm_to_copy"].as_f64().unwrap() > 0.0);
    if cfg!(target_os = "linux") {
        let report =
            json(dir.path(), &["bench", "d/text", "--seconds", "0.05", "--batch-size", "16", "--cold"]);
        assert_eq!(rows(&report), ["gather, cold", "gather, warm", "plain copy"]);
    }
    assert!(complains(dir.path(), &["bench", "d"]).contains("d/text"));
    assert!(complains(dir.path(), &["bench", "d/text", "--batch-size", "101"]).contains("100"));
    assert!(complains(dir.path(), &["bench", "d/text", "--seconds", "-1"]).contains("-1"));
}
