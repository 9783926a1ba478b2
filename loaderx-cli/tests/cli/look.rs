//! Importing, looking, exporting: what a new user does first.

use std::fs;

use crate::common::{complains, fixture, json, names, prints, run};
use serde_json::json;

#[test]
fn every_fixture_is_recognised_imported_described_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    for (input, records, streams) in [
        ("npy/le_f4.npy", 5, 1),
        ("plain.npz", 5, 2),
        ("all.safetensors", 5, 12),
        ("all.parquet", 5, 24),
        ("parts", 5, 2),
        ("all.arrow", 5, 24),
        ("table.csv", 5, 5),
        ("table.tsv", 5, 5),
        ("table.jsonl", 5, 5),
        ("images", 8, 2),
        ("shards", 6, 4),
    ] {
        let source = fixture(input);
        let dest = input.replace('/', "-");
        let text = prints(dir.path(), &["import", source.to_str().unwrap(), &dest]);
        assert!(text.starts_with(&format!("{dest}: {records} records\n")), "{text}");
        let info = json(dir.path(), &["info", &dest]);
        assert_eq!(info["records"], records, "{input}");
        assert_eq!(info["streams"].as_array().unwrap().len(), streams, "{input}");
        let lines = prints(dir.path(), &["head", &dest, "-n", "2", "--json"]);
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(prints(dir.path(), &["head", &dest, "-n", "2"]).lines().count(), 2 * streams, "{input}");
        assert!(prints(dir.path(), &["verify", &dest]).contains("sound"));
        assert!(prints(dir.path(), &["info", &dest]).contains("records"));
    }
    assert!(names(dir.path()).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn records_are_shown_as_text_json_and_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let source = fixture("table.jsonl");
    prints(dir.path(), &["import", source.to_str().unwrap(), "t"]);
    let line = prints(dir.path(), &["cat", "t", "2", "--json"]);
    let record: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record, json!({"id": 1, "score": 0.5, "flag": true, "text": "drei ü", "list": [0, 1]}));
    assert_eq!(prints(dir.path(), &["cat", "t/id", "1..3", "0"]), "1: 0\n2: 1\n0: -1\n");
    assert_eq!(prints(dir.path(), &["cat", "t/text", "2", "--raw"]), "drei ü");
    assert!(complains(dir.path(), &["cat", "t", "5"]).contains("no record 5: the store has 5"));
    assert!(complains(dir.path(), &["cat", "t", "0", "--raw"]).contains("t/text"));
}

#[test]
fn pictures_are_drawn_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let source = fixture("images");
    prints(dir.path(), &["import", source.to_str().unwrap(), "x", "--resize", "4x6"]);
    prints(dir.path(), &["cat", "x/image", "0", "--png", "out"]);
    let png = fs::read(dir.path().join("out/0.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    // Saved and imported again, the pixels are the same.
    fs::create_dir(dir.path().join("again")).unwrap();
    fs::rename(dir.path().join("out"), dir.path().join("again/class")).unwrap();
    prints(dir.path(), &["import", "again", "y", "--resize", "4x6"]);
    assert_eq!(
        prints(dir.path(), &["cat", "y/image", "0", "--json"]),
        prints(dir.path(), &["cat", "x/image", "0", "--json"])
    );
    let drawn = prints(dir.path(), &["head", "x/image", "-n", "1", "--image"]);
    assert!(drawn.starts_with("0: 4 x 6\n"), "{drawn}");
    assert_eq!(drawn.lines().nth(1).unwrap().len(), 6);
    assert!(complains(dir.path(), &["head", "x/label", "--image"]).contains("no pictures"));
}

#[test]
fn exports_come_back_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let source = fixture("npy/le_f4.npy");
    prints(dir.path(), &["import", source.to_str().unwrap(), "a"]);
    prints(dir.path(), &["export", "a", "a.npy"]);
    let (wrote, read) = (fs::read(&source).unwrap(), fs::read(dir.path().join("a.npy")).unwrap());
    assert_eq!(wrote[128..], read[128..]);
    prints(dir.path(), &["export", "a", "a.parquet"]);
    prints(dir.path(), &["import", "a.parquet", "b"]);
    assert_eq!(prints(dir.path(), &["cat", "b/a", "--json"]), prints(dir.path(), &["cat", "a", "--json"]));
    assert!(complains(dir.path(), &["export", "a", "a.txt"]).contains("--format"));
    assert!(complains(dir.path(), &["export", "a", "a.npy"]).contains("existing file"));
}

#[test]
fn complaints_say_what_to_do_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.bin"), "abc").unwrap();
    fs::write(dir.path().join("x.idx"), [0, 0, 8, 1, 0, 0, 0, 9]).unwrap();
    assert!(complains(dir.path(), &["import", "x.bin", "s"]).contains("name the format"));
    assert!(complains(dir.path(), &["import", "x.idx", "s"]).contains("9 bytes, found 0"));
    assert!(complains(dir.path(), &["import", "nothing", "s"]).contains("nothing"));
    assert!(complains(dir.path(), &["info", "."]).contains("no store"));
    let null = fixture("nulls.parquet");
    assert!(complains(dir.path(), &["import", null.to_str().unwrap(), "s"]).contains("row 1"));
    assert_eq!(names(dir.path()), ["x.bin", "x.idx"]);
    prints(dir.path(), &["import", null.to_str().unwrap(), "s", "--fill-nulls", "-1"]);
    assert_eq!(prints(dir.path(), &["cat", "s/x"]), "0: 1\n1: -1\n2: 3\n");
    assert!(complains(dir.path(), &["import", null.to_str().unwrap(), "s"]).contains("not empty"));
    assert!(complains(dir.path(), &["info", "x.bin"]).contains("`loaderx import` makes a store of a file"));
    assert!(complains(dir.path(), &["merge", "s", "s/x", "--output", "m"]).contains("a single store"));
    fs::write(dir.path().join("x.csv"), "").unwrap();
    assert!(complains(dir.path(), &["import", "x.csv", "t"]).contains("the file is empty"));
    // As JSON too.
    let output = run(dir.path(), &["info", "nothing", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["error"]["message"].as_str().unwrap().contains("nothing"));
}

#[test]
fn help_has_examples_and_the_manual_and_completions_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let help = prints(dir.path(), &["--help"]);
    for name in [
        "import",
        "info",
        "head",
        "cat",
        "verify",
        "repair",
        "delete",
        "compact",
        "train-dict",
        "recode",
        "merge",
        "split",
        "export",
        "bench",
        "completions",
        "man",
    ] {
        assert!(help.contains(name), "{name}");
        let own = prints(dir.path(), &[name, "--help"]);
        assert!(own.contains("Example"), "{name} has no example");
    }
    assert!(prints(dir.path(), &["man"]).contains(".TH loaderx 1"));
    assert!(prints(dir.path(), &["man", "import"]).contains("import"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(prints(dir.path(), &["completions", shell]).contains("train-dict"), "{shell}");
    }
}
