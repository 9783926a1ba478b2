//! Tables that PyArrow, `csv` and `json` wrote come in, each column a stream.

use std::fs;
use std::path::Path;

use loaderx_core::convert::{
    Dataset, Format, ImportOptions, import, import_arrow, import_csv, import_jsonl, import_parquet,
};
use loaderx_core::{DType, ErrorKind, Store};
use loaderx_tests::import::{check_refused, content, counted_records, fixture, texts};

fn le<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<Vec<u8>> {
    values.into_iter().map(|value| value.to_vec()).collect()
}

fn check_all_columns(dest: &Path) {
    let dataset = Dataset::open(dest).unwrap();
    assert_eq!((dataset.len(), dataset.names().count()), (5, 24));
    for (name, dtype) in [
        ("u8", DType::U8),
        ("u16", DType::U16),
        ("u32", DType::U32),
        ("u64", DType::U64),
        ("i8", DType::I8),
        ("i16", DType::I16),
        ("i32", DType::I32),
        ("i64", DType::I64),
        ("f16", DType::F16),
        ("f32", DType::F32),
        ("f64", DType::F64),
        ("bool", DType::Bool),
        ("when", DType::I64),
    ] {
        assert_eq!(content(dest.join(name)), (dtype, vec![], counted_records(5, 1, dtype)), "{name}");
    }
    for name in ["text", "large_text", "binary", "image.bytes", "image.path"] {
        assert_eq!(content(dest.join(name)), (DType::U8, vec![], texts()), "{name}");
    }
    let words = ["a", "b", "a", "c", "b"].map(|word| word.as_bytes().to_vec()).to_vec();
    assert_eq!(content(dest.join("word")), (DType::U8, vec![], words));
    let fixed = (0..5).map(|i| vec![i, i + 1]).collect();
    assert_eq!(content(dest.join("fixed")), (DType::U8, vec![2], fixed));
    assert_eq!(content(dest.join("matrix")), (DType::F32, vec![2, 3], counted_records(5, 6, DType::F32)));
    let lists: [&[i64]; 5] = [&[3, 10], &[], &[17], &[24, 31, 38], &[45]];
    let as_i64 = lists.map(|list| list.iter().flat_map(|value| value.to_le_bytes()).collect()).to_vec();
    assert_eq!(content(dest.join("list")), (DType::I64, vec![], as_i64));
    let as_i16 = lists.map(|list| list.iter().flat_map(|&v| (v as i16).to_le_bytes()).collect()).to_vec();
    assert_eq!(content(dest.join("large_list")), (DType::I16, vec![], as_i16));
    let pairs: [&[i32]; 5] = [&[1, 2], &[], &[3, 4, 5, 6], &[], &[7, 8]];
    let pairs = pairs.map(|list| list.iter().flat_map(|value| value.to_le_bytes()).collect()).to_vec();
    assert_eq!(content(dest.join("pairs")), (DType::I32, vec![2], pairs));
}

#[test]
fn every_column_type_comes_in_from_parquet_and_both_arrow_forms() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in
        [("all.parquet", Format::Parquet), ("all.arrow", Format::Arrow), ("stream.arrows", Format::Arrow)]
    {
        let source = fixture(name);
        assert_eq!(Format::detect(&source).unwrap(), format);
        let dest = dir.path().join(name);
        let done = import(&source, format, &dest, &ImportOptions::new()).unwrap();
        let when = done.streams.iter().find(|stream| stream.name == "when").unwrap();
        assert!(when.notes[0].contains("microseconds since 1970"), "{:?}", when.notes);
        check_all_columns(&dest);
    }
}

#[test]
fn every_usual_compression_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for codec in ["none", "gzip", "zstd", "lz4", "snappy", "brotli"] {
        let name = format!("codec_{codec}");
        let dest = dir.path().join(&name);
        import_parquet(fixture(&format!("{name}.parquet")), &dest, &ImportOptions::new()).unwrap();
        assert_eq!(content(dest.join("text")).2, texts(), "{name}");
    }
    let dest = dir.path().join("feather");
    import_arrow(fixture("lz4.feather"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(content(dest.join("i64")).2, counted_records(5, 1, DType::I64));
}

#[test]
fn a_snapshot_of_part_files_comes_in_as_one_in_the_order_of_names() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    assert_eq!(Format::detect(fixture("parts")).unwrap(), Format::Parquet);
    let done = import_parquet(fixture("parts"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 5);
    assert_eq!(content(dest.join("text")).2, texts());
}

#[test]
fn empty_files_and_empty_row_groups_are_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("none");
    assert_eq!(import_parquet(fixture("empty.parquet"), &dest, &ImportOptions::new()).unwrap().records, 0);
    assert_eq!(Dataset::open(&dest).unwrap().names().count(), 2);
    let dest = dir.path().join("some");
    import_parquet(fixture("empty_group.parquet"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(content(dest.join("i64")).2, counted_records(5, 1, DType::I64));
}

#[test]
fn only_selected_columns_are_read_also_from_within_structs() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let options = ImportOptions::new().select(["image.bytes", "i64"]).rename("image.bytes", "image");
    import_parquet(fixture("all.parquet"), &dest, &options).unwrap();
    assert_eq!(Dataset::open(&dest).unwrap().names().collect::<Vec<_>>(), ["i64", "image"]);
    assert_eq!(content(dest.join("image")).2, texts());
    assert_eq!(content(dest.join("i64")).2, counted_records(5, 1, DType::I64));
}

#[test]
fn nulls_are_refused_with_column_and_row_or_filled() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let source = fixture("nulls.parquet");
    let result = import_parquet(&source, &dest, &ImportOptions::new());
    check_refused(result, &dest, &["\"x\"", "row 1", "nulls.parquet", "filled"]);
    let result = import_parquet(&source, &dest, &ImportOptions::new().fill_nulls(0.5));
    check_refused(result, &dest, &["0.5", "i64"]);
    import_parquet(&source, &dest, &ImportOptions::new().fill_nulls(-7.0)).unwrap();
    assert_eq!(content(dest.join("x")).2, le([1_i64, -7, 3].map(i64::to_le_bytes)));
    assert_eq!(content(dest.join("t")).2, [b"a".to_vec(), Vec::new(), b"c".to_vec()]);
}

#[test]
fn unknown_types_and_damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let result = import_parquet(fixture("decimal.parquet"), &dest, &ImportOptions::new());
    let error = check_refused(result, &dest, &["\"price\"", "Decimal"]);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let inputs = tempfile::tempdir().unwrap();
    for name in ["codec_zstd.parquet", "all.arrow"] {
        let whole = fs::read(fixture(name)).unwrap();
        let source = inputs.path().join(name);
        for cut in (0..whole.len()).step_by(whole.len() / 20) {
            fs::write(&source, &whole[..cut]).unwrap();
            let format = Format::detect(&source).unwrap();
            let result = import(&source, format, &dest, &ImportOptions::new());
            let error = check_refused(result, &dest, &[name]);
            assert!(error.is_corrupt(), "{name} cut at {cut}: {error}");
        }
    }
}

#[test]
fn delimited_text_becomes_numbers_and_text() {
    let dir = tempfile::tempdir().unwrap();
    for (name, delimiter) in [("table.csv", b','), ("table.tsv", b'\t')] {
        let dest = dir.path().join(name);
        assert_eq!(import_csv(fixture(name), &dest, delimiter, &ImportOptions::new()).unwrap().records, 5);
        let ids = le((-1..4_i64).map(i64::to_le_bytes));
        assert_eq!(content(dest.join("id")), (DType::I64, vec![], ids));
        let scores = le((0..5).map(|i| (f64::from(i) / 4.0).to_le_bytes()));
        assert_eq!(content(dest.join("score")), (DType::F64, vec![], scores));
        assert_eq!(content(dest.join("flag")), (DType::Bool, vec![], le([[1], [0], [1], [0], [1]])));
        assert_eq!(content(dest.join("text")), (DType::U8, vec![], texts()));
        // "000" is a name: as a number it would not come back.
        assert_eq!(content(dest.join("code")).2[1], b"001");
    }
    let dest = dir.path().join("typed");
    let options = ImportOptions::new()
        .select(["id", "score"])
        .column_type("id", DType::I16)
        .column_type("score", DType::F32);
    import_csv(fixture("table.csv"), &dest, b',', &options).unwrap();
    assert_eq!(content(dest.join("id")).2, le((-1..4_i16).map(i16::to_le_bytes)));
    assert_eq!(content(dest.join("score")).0, DType::F32);
}

#[test]
fn values_that_do_not_fit_are_refused_with_column_and_row() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let csv = |options: &ImportOptions| import_csv(fixture("table.csv"), &dest, b',', options);
    let result = csv(&ImportOptions::new().column_type("id", DType::U8));
    check_refused(result, &dest, &["\"id\"", "row 1", "-1", "u8", "table.csv"]);
    let result = csv(&ImportOptions::new().column_type("text", DType::F32));
    check_refused(result, &dest, &["\"text\"", "f32"]);
    let result = csv(&ImportOptions::new().select(["nothing"]));
    check_refused(result, &dest, &["\"nothing\"", "score"]);

    let inputs = tempfile::tempdir().unwrap();
    let source = inputs.path().join("x.csv");
    let refuse = |text: &[u8], saying: &[&str]| {
        fs::write(&source, text).unwrap();
        check_refused(import_csv(&source, &dest, b',', &ImportOptions::new()), &dest, saying);
    };
    refuse(b"a,b\n1,2\n3\n", &["line 3", "1 cells", "2"]);
    refuse(b"a\n1\n\"\"\n", &["\"a\"", "row 2", "missing"]);
    refuse(b"a\n\xff\n", &["UTF-8"]);
    refuse(b"a\n1\ntrue\n", &["\"a\"", "several kinds"]);
}

#[test]
fn json_lines_become_numbers_lists_and_text() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    assert_eq!(import_jsonl(fixture("table.jsonl"), &dest, &ImportOptions::new()).unwrap().records, 5);
    assert_eq!(content(dest.join("id")), (DType::I64, vec![], le((-1..4_i64).map(i64::to_le_bytes))));
    assert_eq!(content(dest.join("flag")), (DType::Bool, vec![], le([[1], [0], [1], [0], [1]])));
    assert_eq!(content(dest.join("text")), (DType::U8, vec![], texts()));
    let lists = (0..5_i64).map(|n| (0..n).flat_map(i64::to_le_bytes).collect()).collect();
    assert_eq!(content(dest.join("list")), (DType::I64, vec![], lists));
}

#[test]
fn json_that_cannot_be_stored_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let inputs = tempfile::tempdir().unwrap();
    let source = inputs.path().join("x.jsonl");
    let import = |text: &str, options: &ImportOptions| {
        fs::write(&source, text).unwrap();
        import_jsonl(&source, &dest, options)
    };
    for (text, saying) in [
        ("{\"a\":1}\n[1]\n", &["line 2", "x.jsonl"][..]),
        ("{\"a\":1}\n{\"a\":", &["line 2"]),
        ("{\"a\":{\"b\":1}}\n", &["\"a\"", "object"]),
        ("{\"a\":[[1]]}\n", &["list within a list"]),
        ("{\"a\":1}\n{}\n", &["\"a\"", "row 2"]),
        ("{\"a\":1}\n{\"a\":1,\"b\":1}\n", &["\"b\"", "row 1"]),
        ("{\"a\":1}\n{\"a\":\"x\"}\n", &["\"a\"", "several kinds"]),
        ("{\"a\":1}\n{\"a\":[1]}\n", &["\"a\"", "mixes"]),
    ] {
        check_refused(import(text, &ImportOptions::new()), &dest, saying);
    }
    import("{\"a\":1}\n\n{\"b\":[2]}\n", &ImportOptions::new().fill_nulls(9.0)).unwrap();
    assert_eq!(content(dest.join("a")).2, le([1_i64, 9].map(i64::to_le_bytes)));
    assert_eq!(Store::open(dest.join("b")).unwrap().get(0).unwrap(), b"");
}
