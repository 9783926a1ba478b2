//! What `loaderx import` is told on the command line.

use std::fs;

use crate::common::{complains, fixture, json, names, prints};

#[test]
fn several_files_become_one_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    file("train-images-idx3-ubyte", &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]);
    file("train-labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 2, 7, 8]);
    file("short-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 1, 7]);
    let run = |args: &[&str]| prints(dir.path(), args);
    run(&["import", "image=train-images-idx3-ubyte", "label=train-labels-idx1-ubyte", "train"]);
    assert_eq!(run(&["cat", "train", "1", "--json"]), "{\"image\":[[3,4]],\"label\":8}\n");
    run(&["import", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "plain"]);
    assert_eq!(run(&["cat", "plain", "0", "--json"]), "{\"train-images\":[[1,2]],\"train-labels\":7}\n");
    run(&["import", "only=train-labels-idx1-ubyte", "one"]);
    assert_eq!(run(&["cat", "one/only", "--json"]), "7\n8\n");

    let before = names(dir.path());
    let refused = |args: &[&str]| complains(dir.path(), args);
    let text = refused(&["import", "train-images-idx3-ubyte", "short-idx1-ubyte", "x"]);
    assert!(text.contains("2 records") && text.contains("has 1"), "{text}");
    let labels = "train-labels-idx1-ubyte";
    assert!(refused(&["import", &format!("a={labels}"), &format!("a={labels}"), "x"]).contains("\"a\""));
    assert!(refused(&["import", labels, labels, "x", "--format", "idx"]).contains("leave out --format"));
    assert!(refused(&["import", labels, labels, "x", "--select", "a"]).contains("to select"));
    assert!(refused(&["import", labels, "missing.npy", "x"]).contains("missing.npy"));
    assert!(refused(&["import", labels]).contains("required"));
    assert_eq!(names(dir.path()), before);
}

#[test]
fn a_split_is_chosen_by_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("snapshot/data")).unwrap();
    for part in ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"] {
        let part = dir.path().join(format!("snapshot/data/{part}.parquet"));
        fs::copy(fixture("codec_snappy.parquet"), part).unwrap();
    }
    let text = complains(dir.path(), &["import", "snapshot", "train"]);
    assert!(text.contains("test, train") && text.contains("--split"), "{text}");
    prints(dir.path(), &["import", "snapshot", "train", "--split", "train"]);
    prints(dir.path(), &["import", "snapshot", "test", "--split", "test"]);
    let records = |name: &str| json(dir.path(), &["info", name])["records"].as_u64();
    assert_eq!((records("train"), records("test")), (Some(10), Some(5)));
}

#[test]
fn options_that_mean_nothing_for_the_input_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |input: &str, option: &[&str], saying: &str| {
        let source = fixture(input);
        let args = [&["import", source.to_str().unwrap(), "x"], option].concat();
        let text = complains(dir.path(), &args);
        assert!(text.contains(saying), "{text}");
    };
    refused("npy/le_f4.npy", &["--select", "a"], "format npy has no columns or arrays to select");
    refused("npy/le_f4.npy", &["--rename", "a=b"], "to rename");
    refused("all.parquet", &["--type", "i64=u8"], "whose type can be chosen");
    refused("plain.npz", &["--fill-nulls", "0"], "no missing values");
    refused("table.csv", &["--resize", "2x2"], "no images");
    refused("table.csv", &["--split", "train"], "no splits");
    refused("table.csv", &["--format", "xml"], "there is no format \"xml\"");
    refused("table.csv", &["--format", "parquet"], "no Parquet file");
    refused("table.csv", &["--resize", "2"], "HEIGHTxWIDTH");
    refused("table.csv", &["--rename", "id"], "NAME=NEW");
    refused("table.csv", &["--type", "id=u7"], "u7");
    refused("table.csv", &["--level", "40"], "40");
    refused("table.csv", &["--codec", "lz4"], "lz4");
    refused("table.csv", &["--format-version", "5"], "5");
    assert!(names(dir.path()).is_empty());
}
