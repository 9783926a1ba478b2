//! Arrays that NumPy and safetensors wrote come in byte for byte, whatever their type, order and version.

use std::fs;

use loaderx_core::convert::{
    Dataset, Format, ImportOptions, import, import_npy, import_npz, import_safetensors,
};
use loaderx_core::format::FormatVersion;
use loaderx_core::{Codec, DType, ErrorKind};
use loaderx_tests::import::{check_refused, content, counted, counted_records, fixture};

const NUMPY: [(&str, DType); 12] = [
    ("b1", DType::Bool),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
];

#[test]
fn every_numpy_type_comes_in_from_both_byte_orders() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for (name, dtype) in NUMPY {
        for order in ["le", "be"] {
            let source = fixture(&format!("npy/{order}_{name}.npy"));
            if !source.exists() {
                continue;
            }
            files += 1;
            let dest = dir.path().join(format!("{order}_{name}"));
            let done = import_npy(&source, &dest, &ImportOptions::new()).unwrap();
            assert_eq!((done.records, done.streams[0].format), (5, FormatVersion::V3));
            assert_eq!(content(&dest), (dtype, vec![2, 3], counted_records(5, 6, dtype)), "{order} {name}");
        }
    }
    assert_eq!(files, 18);
}

#[test]
fn fortran_order_is_turned_into_records() {
    let dir = tempfile::tempdir().unwrap();
    for (name, records, item) in [
        ("fortran_5", 5, vec![]),
        ("fortran_5x3", 5, vec![3]),
        ("fortran_5x2x3", 5, vec![2, 3]),
        ("fortran_4x2x3x2", 4, vec![2, 3, 2]),
    ] {
        let dest = dir.path().join(name);
        import_npy(fixture(&format!("npy/{name}.npy")), &dest, &ImportOptions::new()).unwrap();
        let elements = item.iter().product();
        assert_eq!(
            content(&dest),
            (DType::I32, item, counted_records(records, elements, DType::I32)),
            "{name}"
        );
    }
}

#[test]
fn items_of_many_elements_in_fortran_order_come_in_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (records, sides) = (70_usize, [13_usize, 11]);
    let value = |record: usize, a: usize, b: usize| (record * 143 + a * 11 + b) as u16;
    let header = format!(
        "{{'descr': '>u2', 'fortran_order': True, 'shape': ({records}, {}, {}), }}",
        sides[0], sides[1]
    );
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:117}\n").as_bytes());
    let (mut expected, mut columns) = (vec![Vec::new(); records], Vec::new());
    for b in 0..sides[1] {
        for a in 0..sides[0] {
            columns.extend((0..records).flat_map(|record| value(record, a, b).to_be_bytes()));
        }
    }
    for (record, bytes) in expected.iter_mut().enumerate() {
        let items = (0..sides[0]).flat_map(|a| (0..sides[1]).map(move |b| (a, b)));
        bytes.extend(items.flat_map(|(a, b)| value(record, a, b).to_le_bytes()));
    }
    file.extend(columns);
    let source = dir.path().join("x.npy");
    fs::write(&source, file).unwrap();
    let dest = dir.path().join("x");
    import_npy(&source, &dest, &ImportOptions::new()).unwrap();
    assert_eq!(content(&dest), (DType::U16, sides.to_vec(), expected));
}

#[test]
fn every_header_version_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for version in 1..=3 {
        let dest = dir.path().join(version.to_string());
        import_npy(fixture(&format!("npy/v{version}.npy")), &dest, &ImportOptions::new()).unwrap();
        assert_eq!(content(&dest), (DType::F32, vec![2], counted_records(5, 2, DType::F32)));
    }
}

#[test]
fn empty_arrays_keep_their_shape_and_a_scalar_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, item, records, format) in [
        ("empty_0", vec![], 0, FormatVersion::V3),
        ("empty_0x3", vec![3], 0, FormatVersion::V3),
        ("empty_3x0", vec![0], 3, FormatVersion::V4),
    ] {
        let dest = dir.path().join("made").join(name);
        let done = import_npy(fixture(&format!("npy/{name}.npy")), &dest, &ImportOptions::new()).unwrap();
        assert_eq!(done.streams[0].format, format);
        assert_eq!(content(&dest), (DType::F32, item, vec![Vec::new(); records]), "{name}");
    }
    let empty = tempfile::tempdir().unwrap();
    let dest = empty.path().join("x");
    let result = import_npy(fixture("npy/0d.npy"), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["scalar", "0d.npy", "reshape"]);
}

#[test]
fn types_that_stores_lack_are_refused_by_name() {
    for (name, saying) in
        [("complex", "<c8"), ("text", "<U2"), ("object", "|O"), ("structured", "structured")]
    {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("x");
        let result = import_npy(fixture(&format!("npy/{name}.npy")), &dest, &ImportOptions::new());
        let error = check_refused(result, &dest, &[saying, name]);
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn every_cut_of_an_npy_file_is_refused_and_so_are_trailing_bytes() {
    let whole = fs::read(fixture("npy/le_i4.npy")).unwrap();
    for length in (0..whole.len()).chain([whole.len() + 1]) {
        let dir = tempfile::tempdir().unwrap();
        let inputs = tempfile::tempdir().unwrap();
        let source = inputs.path().join("x.npy");
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        fs::write(&source, &bytes).unwrap();
        let dest = dir.path().join("x");
        let error = check_refused(import_npy(&source, &dest, &ImportOptions::new()), &dest, &["x.npy"]);
        assert!(error.is_corrupt(), "length {length}: {error}");
        if length >= 128 {
            assert!(error.message().contains(&format!("120 bytes, found {}", length - 128)), "{error}");
        }
    }
}

#[test]
fn archives_become_datasets() {
    let dir = tempfile::tempdir().unwrap();
    for (name, dtype) in [("plain", DType::U8), ("compressed", DType::F32)] {
        let dest = dir.path().join(name);
        let options = ImportOptions::new().codec(Codec::zstd());
        let done = import(fixture(&format!("{name}.npz")), Format::Npz, &dest, &options).unwrap();
        assert_eq!((done.records, done.streams.len()), (5, 2));
        let dataset = Dataset::open(&dest).unwrap();
        assert_eq!(dataset.names().collect::<Vec<_>>(), ["image", "label"]);
        assert_eq!(content(dest.join("image")), (dtype, vec![2, 3], counted_records(5, 6, dtype)), "{name}");
        assert_eq!(content(dest.join("label")), (DType::I64, vec![], counted_records(5, 1, DType::I64)));
    }
}

#[test]
fn streams_are_selected_and_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let options = ImportOptions::new().select(["label"]).rename("label", "class");
    import_npz(fixture("plain.npz"), &dest, &options).unwrap();
    assert_eq!(Dataset::open(&dest).unwrap().names().collect::<Vec<_>>(), ["class"]);

    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let options = ImportOptions::new().select(["labels"]);
    let error =
        check_refused(import_npz(fixture("plain.npz"), &dest, &options), &dest, &["\"labels\"", "label"]);
    assert!(error.is_not_found());
    for bad in ["", "a/b", "..", "a\\b", ".x", "a:b"] {
        let options = ImportOptions::new().rename("label", bad);
        check_refused(import_npz(fixture("plain.npz"), &dest, &options), &dest, &[&format!("{bad:?}")]);
    }
    let options = ImportOptions::new().rename("label", "image");
    check_refused(import_npz(fixture("plain.npz"), &dest, &options), &dest, &["two streams", "\"image\""]);
}

#[test]
fn streams_of_unequal_length_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let result = import_npz(fixture("unequal.npz"), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["\"image\" has 5", "\"label\" has 4"]);
    let result = import_safetensors(fixture("unequal.safetensors"), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["\"a\" has 5", "\"b\" has 4"]);
}

#[test]
fn a_damaged_archive_is_refused() {
    let whole = fs::read(fixture("compressed.npz")).unwrap();
    let inputs = tempfile::tempdir().unwrap();
    let source = inputs.path().join("x.npz");
    for cut in (0..whole.len()).step_by(7) {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("x");
        fs::write(&source, &whole[..cut]).unwrap();
        let error = check_refused(import_npz(&source, &dest, &ImportOptions::new()), &dest, &["x.npz"]);
        assert!(error.is_corrupt(), "cut at {cut}: {error}");
    }
    // A flipped bit in the first member's compressed bytes.
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let mut flipped = whole.clone();
    flipped[60] ^= 16;
    fs::write(&source, &flipped).unwrap();
    let error = check_refused(import_npz(&source, &dest, &ImportOptions::new()), &dest, &["x.npz"]);
    assert!(error.is_corrupt(), "{error}");
}

#[test]
fn every_tensor_type_comes_in() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let source = fixture("all.safetensors");
    assert_eq!(Format::detect(&source).unwrap(), Format::Safetensors);
    let done = import_safetensors(&source, &dest, &ImportOptions::new()).unwrap();
    assert_eq!((done.records, done.streams.len()), (5, 12));
    for (name, dtype) in NUMPY {
        let name = if dtype == DType::Bool { "bool" } else { name };
        assert_eq!(content(dest.join(name)), (dtype, vec![2], counted_records(5, 2, dtype)), "{name}");
    }
    let dest = dir.path().join("y");
    import_safetensors(fixture("bf16.safetensors"), &dest, &ImportOptions::new()).unwrap();
    let bytes = counted(20, DType::U8);
    let records = bytes.chunks(4).map(<[u8]>::to_vec).collect();
    assert_eq!(content(dest.join("half")), (DType::BF16, vec![2], records));
}

#[test]
fn every_cut_of_a_tensor_file_is_refused() {
    let whole = fs::read(fixture("all.safetensors")).unwrap();
    let inputs = tempfile::tempdir().unwrap();
    let source = inputs.path().join("x.safetensors");
    for length in (0..whole.len()).step_by(11).chain([whole.len() - 1, whole.len() + 1]) {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("x");
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        fs::write(&source, &bytes).unwrap();
        let result = import_safetensors(&source, &dest, &ImportOptions::new());
        let error = check_refused(result, &dest, &["x.safetensors"]);
        assert!(error.is_corrupt(), "length {length}: {error}");
    }
}
