//! Directories of part files: of several splits one is chosen, and no part may be missing.

use std::fs;
use std::path::Path;

use loaderx_core::DType;
use loaderx_core::ErrorKind;
use loaderx_core::convert::{
    Dataset, ImportOptions, import_arrow, import_parquet, import_streams, import_webdataset,
};
use loaderx_tests::import::{check_refused, content, counted_records, fixture, texts};

/// Puts a copy of the fixture there under each of the names.
fn copies(root: &Path, fixture_name: &str, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(fixture(fixture_name), path).unwrap();
    }
}

#[test]
fn a_split_of_a_snapshot_comes_in_alone_and_several_are_not_mixed() {
    let snapshot = tempfile::tempdir().unwrap();
    fs::write(snapshot.path().join("README.md"), "---\n").unwrap();
    fs::write(snapshot.path().join(".gitattributes"), "*.parquet filter=lfs\n").unwrap();
    let parts = [
        "data/train-00000-of-00002.parquet",
        "data/train-00001-of-00002.parquet",
        "data/test-00000-of-00001.parquet",
    ];
    copies(snapshot.path(), "codec_none.parquet", &parts);
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let import = |options: &ImportOptions| import_parquet(snapshot.path(), &dest, options);
    check_refused(import(&ImportOptions::new()), &dest, &["several splits: test, train", "--split"]);
    let error = check_refused(import(&ImportOptions::new().split("dev")), &dest, &["\"dev\"", "test, train"]);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(import(&ImportOptions::new().split("train")).unwrap().records, 10);
    assert_eq!(content(dest.join("text")).2, [texts(), texts()].concat());
    fs::remove_dir_all(&dest).unwrap();
    assert_eq!(import(&ImportOptions::new().split("test")).unwrap().records, 5);
    fs::remove_dir_all(&dest).unwrap();
    fs::remove_file(snapshot.path().join(parts[0])).unwrap();
    let error = check_refused(
        import(&ImportOptions::new().split("train")),
        &dest,
        &["part 0 of the 2", "train", "1 are there", "fetch"],
    );
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let file = snapshot.path().join(parts[2]);
    let result = import_parquet(&file, &dest, &ImportOptions::new().split("test"));
    check_refused(result, &dest, &["single file", "\"test\""]);
}

#[cfg(unix)]
#[test]
fn the_links_of_the_hubs_cache_are_followed() {
    let cache = tempfile::tempdir().unwrap();
    copies(cache.path(), "codec_none.parquet", &["blobs/3a7bd3e2"]);
    let data = cache.path().join("snapshots/main/data");
    fs::create_dir_all(&data).unwrap();
    let link = data.join("train-00000-of-00001.parquet");
    std::os::unix::fs::symlink("../../../blobs/3a7bd3e2", link).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let done = import_parquet(cache.path().join("snapshots/main"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 5);
}

#[test]
fn splits_in_folders_are_told_apart_also_for_arrow_and_tar() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let saved = tempfile::tempdir().unwrap();
    let parts = ["train/data-00000-of-00001.arrow", "test/data-00000-of-00001.arrow"];
    copies(saved.path(), "stream.arrows", &parts);
    let result = import_arrow(saved.path(), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["several splits: test, train"]);
    let one = ImportOptions::new().split("train").select(["i64"]);
    assert_eq!(import_arrow(saved.path(), &dest, &one).unwrap().records, 5);
    fs::remove_dir_all(&dest).unwrap();
    let shards = tempfile::tempdir().unwrap();
    copies(shards.path(), "shards/0.tar", &["train/0.tar", "validation/0.tar"]);
    let result = import_webdataset(shards.path(), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["several splits: train, validation"]);
    let one = ImportOptions::new().split("validation");
    assert_eq!(import_webdataset(shards.path(), &dest, &one).unwrap().records, 3);
}

#[test]
fn files_of_one_array_each_become_the_streams_of_one_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let inputs = tempfile::tempdir().unwrap();
    let labels = inputs.path().join("labels-idx1-ubyte");
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5]).unwrap();
    let images = fixture("npy/fortran_5x2x3.npy");
    let done =
        import_streams(&[("image", &images), ("label", &labels)], &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 5);
    assert_eq!(Dataset::open(&dest).unwrap().names().collect::<Vec<_>>(), ["image", "label"]);
    assert_eq!(content(dest.join("image")).2, counted_records(5, 6, DType::I32));
    assert_eq!(content(dest.join("label")).2, [[1], [2], [3], [4], [5]]);
    fs::remove_dir_all(&dest).unwrap();

    let refused = |files: &[(&str, &Path)], saying: &[&str]| {
        check_refused(import_streams(files, &dest, &ImportOptions::new()), &dest, saying)
    };
    let four = fixture("npy/fortran_4x2x3x2.npy");
    let error = refused(&[("a", &images), ("b", &four)], &["5 records", "4", "equally long"]);
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    refused(&[("a", &images), ("a", &labels)], &["two streams", "\"a\""]);
    refused(&[("a", &images), ("b/c", &labels)], &["\"b/c\""]);
    let table = fixture("table.csv");
    assert_eq!(
        refused(&[("a", &images), ("t", &table)], &["csv", "by itself"]).kind(),
        ErrorKind::Unsupported
    );
    refused(&[], &["no files"]);
}
