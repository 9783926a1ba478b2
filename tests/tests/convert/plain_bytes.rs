//! Stores without a schema, such as Python writes from plain bytes, are rewritten and exported like any other, and get a
//! schema when it is said what their records are.

use std::path::{Path, PathBuf};

use loaderx_core::convert::{
    ExportOptions, ImportOptions, Part, export_files, export_npy, export_parquet, import_npy, import_parquet,
    rewrite, rewrite_streams,
};
use loaderx_core::{Codec, CreateOptions, DType, Dense, ErrorKind, Schema, Store};
use loaderx_tests::golden::{self, Extent};
use loaderx_tests::import::{check_refused, content};
use tempfile::TempDir;

/// The store of plain bytes that Python wrote, and its records.
fn from_python(dir: &TempDir) -> (Store, Vec<Vec<u8>>) {
    let golden = golden::named("bytes_no_schema");
    let path = dir.path().join("python");
    golden.unpack(&path, Extent::Content);
    let store = Store::open(path).unwrap();
    assert_eq!(store.schema(), None);
    (store, golden.model().records)
}

/// A store of plain bytes with these records.
fn plain(dir: &TempDir, name: &str, records: &[&[u8]]) -> Store {
    let store = CreateOptions::new().create(dir.path().join(name)).unwrap();
    store.append_slices(records.iter().copied()).unwrap();
    store
}

/// Every record of the store in `path`, which has no schema.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let store = Store::open(path).unwrap();
    assert_eq!(store.schema(), None);
    (0..store.len()).map(|index| store.get(index).unwrap()).collect()
}

/// A directory for a destination, which a refusal has to leave empty.
fn empty() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    (dir, dest)
}

#[test]
fn pythons_plain_bytes_are_recoded_merged_and_divided() {
    let dir = tempfile::tempdir().unwrap();
    let (store, expected) = from_python(&dir);
    for codec in [Codec::Raw, Codec::zstd(), Codec::zstd_dict()] {
        let dest = dir.path().join(codec.name());
        let done = rewrite(vec![Part::all(&store)], &dest, &ImportOptions::new().codec(codec)).unwrap();
        assert_eq!((done.records, &done.streams[0].schema), (expected.len() as u64, &None));
        assert_eq!(records(&dest), expected, "{codec:?}");
    }
    let merged = dir.path().join("merged");
    rewrite(vec![Part::all(&store), Part::all(&store)], &merged, &ImportOptions::new()).unwrap();
    assert_eq!(records(&merged), [expected.clone(), expected.clone()].concat());
    let part = dir.path().join("part");
    let last = store.len() - 1;
    rewrite(vec![Part::at(&store, [last, 0].into_iter())], &part, &ImportOptions::new()).unwrap();
    assert_eq!(records(&part), [expected[last as usize].clone(), expected[0].clone()]);
    let dataset = dir.path().join("dataset");
    rewrite_streams(vec![("only", vec![Part::all(&store)])], &dataset, &ImportOptions::new()).unwrap();
    assert_eq!(records(&dataset.join("only")), expected);
}

#[test]
fn pythons_plain_bytes_are_exported_as_files_and_as_a_binary_column() {
    let dir = tempfile::tempdir().unwrap();
    let (store, expected) = from_python(&dir);
    let (files, options) = (dir.path().join("files"), ExportOptions::new());
    export_files(&store, None, &files, &options).unwrap();
    let mut written: Vec<_> = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path()).collect();
    written.sort();
    let written: Vec<_> = written.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(written, expected);
    let file = dir.path().join("x.parquet");
    export_parquet(&[("x", &store)], &file, &options).unwrap();
    let back = dir.path().join("back");
    import_parquet(&file, &back, &ImportOptions::new()).unwrap();
    assert_eq!(content(back.join("x")), (DType::U8, vec![], expected));
}

#[test]
fn plain_bytes_that_are_described_become_typed() {
    let dir = tempfile::tempdir().unwrap();
    let store = plain(&dir, "plain", &[&[1, 0, 2, 0], &[3, 0, 4, 0], &[5, 0, 6, 0]]);
    let schema = Schema::dense(DType::U16, &[2]).unwrap();
    let typed = dir.path().join("typed");
    rewrite(vec![Part::all(&store).described(schema.clone())], &typed, &ImportOptions::new()).unwrap();
    let batch = Dense::open(&typed).unwrap().batch(&[2, 0]).unwrap();
    assert_eq!((batch.shape(), batch.as_slice::<u16>().unwrap()), (&[2, 2][..], &[5, 6, 1, 2][..]));
    // One part with a schema and a described one fit together.
    let typed_store = Store::open(&typed).unwrap();
    let both = dir.path().join("both");
    let parts = vec![Part::all(&typed_store), Part::all(&store).described(schema.clone())];
    assert_eq!(rewrite(parts, &both, &ImportOptions::new()).unwrap().records, 6);

    let options = ExportOptions::new().schema(schema.clone());
    let npy = dir.path().join("x.npy");
    export_npy(&store, &npy, &options).unwrap();
    let back = dir.path().join("npy");
    import_npy(&npy, &back, &ImportOptions::new()).unwrap();
    assert_eq!(content(&back), content(&typed));
    let parquet = dir.path().join("x.parquet");
    export_parquet(&[("x", &store)], &parquet, &options).unwrap();
    let back = dir.path().join("parquet");
    import_parquet(&parquet, &back, &ImportOptions::new()).unwrap();
    assert_eq!(content(back.join("x")), content(&typed));
}

#[test]
fn descriptions_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = plain(&dir, "plain", &[&[1, 2, 3, 4], &[5, 6]]);
    let (_empty, dest) = empty();
    let four = Schema::dense(DType::U8, &[4]).unwrap();
    let rewritten = |parts| rewrite(parts, &dest, &ImportOptions::new());
    let result = rewritten(vec![Part::all(&store).described(four.clone())]);
    let error = check_refused(result, &dest, &["2 bytes", "dense u8 [4]"]);
    assert_eq!((error.kind(), error.record()), (ErrorKind::SchemaMismatch, Some(1)));
    let options = ExportOptions::new().schema(four.clone());
    let error = check_refused(export_npy(&store, &dest, &options), &dest, &["2 bytes", "dense u8 [4]"]);
    assert_eq!((error.kind(), error.record()), (ErrorKind::SchemaMismatch, Some(1)));
    let result = export_parquet(&[("x", &store)], &dest, &options);
    let error = check_refused(result, &dest, &["2 bytes", "dense u8 [4]"]);
    assert_eq!((error.kind(), error.record()), (ErrorKind::SchemaMismatch, Some(1)));
    check_refused(export_npy(&store, &dest, &ExportOptions::new()), &dest, &["no schema", "element type"]);

    let typed = CreateOptions::new().schema(four).create(dir.path().join("typed")).unwrap();
    typed.append_slices([[1, 2, 3, 4].as_slice()]).unwrap();
    let result = rewritten(vec![Part::all(&store), Part::all(&typed)]);
    check_refused(result, &dest, &["dense u8 [4]", "plain bytes", "say what"]);
    let two = Schema::dense(DType::U16, &[2]).unwrap();
    let result = rewritten(vec![Part::all(&typed).described(two.clone())]);
    check_refused(result, &dest, &["dense u8 [4]", "dense u16 [2]"]);
    let result = export_npy(&typed, &dest, &ExportOptions::new().schema(two));
    check_refused(result, &dest, &["dense u8 [4]", "dense u16 [2]"]);
}
