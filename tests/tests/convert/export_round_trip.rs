//! What is exported and imported again is byte for byte what it was.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;

use loaderx_core::convert::{
    Dataset, Done, ExportOptions, ImportOptions, export_files, export_npy, export_parquet, import_files,
    import_npy, import_parquet,
};
use loaderx_core::format::FormatVersion;
use loaderx_core::{CreateOptions, DType, ErrorKind, Schema, Store};
use loaderx_tests::import::{check_refused, content, fixture};
use proptest::prelude::*;
use tempfile::TempDir;

fn store(dir: &TempDir, name: &str, schema: Schema, records: &[Vec<u8>]) -> Store {
    let options = CreateOptions::new().schema(schema).format(FormatVersion::V4);
    let store = options.create(dir.path().join(name)).unwrap();
    store.append_slices(records.iter().map(Vec::as_slice)).unwrap();
    store
}

#[test]
fn files_that_numpy_wrote_are_written_again_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for name in ["b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"] {
        let source = fixture(&format!("npy/le_{name}.npy"));
        let (dest, back) = (dir.path().join(name), dir.path().join(format!("{name}.npy")));
        import_npy(&source, &dest, &ImportOptions::new()).unwrap();
        assert_eq!(export_npy(&Store::open(&dest).unwrap(), &back, &ExportOptions::new()).unwrap(), 5);
        let (wrote, read) = (fs::read(&source).unwrap(), fs::read(&back).unwrap());
        // The headers may be spelled differently; NumPy pads both to the same length.
        assert_eq!(wrote.len(), read.len(), "{name}");
        assert_eq!(wrote[128..], read[128..], "{name}");
        files += 1;
    }
    assert_eq!(files, 12);
}

#[test]
fn plain_files_come_back_under_their_names() {
    let inputs = tempfile::tempdir().unwrap();
    fs::create_dir_all(inputs.path().join("b/c")).unwrap();
    for (name, text) in [("a.txt", "one"), ("b/c/2.txt", ""), ("b/ü", "three")] {
        fs::write(inputs.path().join(name), text).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    import_files(inputs.path(), &dest, &ImportOptions::new()).unwrap();
    let dataset = Dataset::open(&dest).unwrap();
    let back = dir.path().join("back");
    let (records, names) = (dataset.store("content").unwrap(), dataset.store("name").unwrap());
    assert_eq!(export_files(records, Some(names), &back, &ExportOptions::new()).unwrap(), 3);
    let again = dir.path().join("again");
    import_files(&back, &again, &ImportOptions::new()).unwrap();
    for stream in ["content", "name"] {
        assert_eq!(content(again.join(stream)), content(dest.join(stream)));
    }
    let numbered = dir.path().join("numbered");
    export_files(records, None, &numbered, &ExportOptions::new()).unwrap();
    assert_eq!(fs::read_to_string(numbered.join("2.bin")).unwrap(), "three");
}

#[test]
fn names_that_lead_out_of_the_destination_are_refused() {
    for bad in ["../x", "/x", "a/../../x", ""] {
        let inputs = tempfile::tempdir().unwrap();
        let text = Schema::ragged(DType::U8, &[]).unwrap();
        let records = store(&inputs, "records", text.clone(), &[b"1".to_vec()]);
        let names = store(&inputs, "names", text, &[bad.as_bytes().to_vec()]);
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("out");
        let result = export_files(&records, Some(&names), &dest, &ExportOptions::new());
        check_refused(result, &dest, &[&format!("{bad:?}"), "record 0"]);
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_and_leaves_nothing() {
    let inputs = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("out");
    let options = ExportOptions::new();
    let ragged = store(&inputs, "ragged", Schema::ragged(DType::F32, &[]).unwrap(), &[vec![0; 8]]);
    let error = check_refused(export_npy(&ragged, &dest, &options), &dest, &["ragged"]);
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    let half = store(&inputs, "half", Schema::dense(DType::BF16, &[]).unwrap(), &[vec![0; 2]]);
    check_refused(export_parquet(&[("half", &half)], &dest, &options), &dest, &["bf16", "\"half\""]);
    let empty = store(&inputs, "empty", Schema::dense(DType::F32, &[0]).unwrap(), &[vec![]]);
    check_refused(export_parquet(&[("empty", &empty)], &dest, &options), &dest, &["[0]"]);
    let two = store(&inputs, "two", Schema::dense(DType::U8, &[]).unwrap(), &[vec![0], vec![1]]);
    let result = export_parquet(&[("a", &ragged), ("b", &two)], &dest, &options);
    check_refused(result, &dest, &["\"b\" has 2", "1"]);
    let cancelled = ExportOptions::new().progress(|_: &Done| ControlFlow::Break(()));
    let error = check_refused(export_npy(&two, &dest, &cancelled), &dest, &["cancelled"]);
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    fs::write(&dest, "mine").unwrap();
    assert_eq!(export_npy(&two, &dest, &options).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&dest).unwrap(), "mine");
}

/// An element type that Parquet and npy both have.
fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.iter().copied().filter(|&dtype| dtype != DType::BF16).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_streams_survive_parquet(
        dtype in dtype(),
        shape in prop::collection::vec(1_usize..4, 0..3),
        lengths in prop::collection::vec(0_usize..5, 0..9),
        seed: u8,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let item: usize = shape.iter().product::<usize>() * dtype.size();
        let bytes = |rows: usize, at: usize| -> Vec<u8> {
            let modulus = if dtype == DType::Bool { 2 } else { 256 };
            (0..rows * item).map(|i| ((i * 37 + at * 11 + usize::from(seed)) % modulus) as u8).collect()
        };
        let dense: Vec<_> = (0..lengths.len()).map(|at| bytes(1, at)).collect();
        let ragged: Vec<_> = lengths.iter().enumerate().map(|(at, &rows)| bytes(rows, at)).collect();
        let expected: BTreeMap<_, _> = [
            ("dense", (Schema::dense(dtype, &shape).unwrap(), dense)),
            ("ragged", (Schema::ragged(dtype, &shape).unwrap(), ragged)),
        ].into();
        let stores: Vec<_> = expected
            .iter()
            .map(|(name, (schema, records))| (*name, store(&dir, name, schema.clone(), records)))
            .collect();
        let streams: Vec<_> = stores.iter().map(|(name, store)| (*name, store)).collect();
        let file = dir.path().join("x.parquet");
        export_parquet(&streams, &file, &ExportOptions::new()).unwrap();
        let back = dir.path().join("back");
        import_parquet(&file, &back, &ImportOptions::new()).unwrap();
        for (name, (schema, records)) in expected {
            let store = Store::open(back.join(name)).unwrap();
            prop_assert_eq!(store.schema(), Some(&schema));
            prop_assert_eq!(content(back.join(name)).2, records);
        }
        let npy = dir.path().join("x.npy");
        export_npy(&stores[0].1, &npy, &ExportOptions::new()).unwrap();
        let back = dir.path().join("npy");
        import_npy(&npy, &back, &ImportOptions::new()).unwrap();
        prop_assert_eq!(content(back), content(dir.path().join("dense")));
    }
}
