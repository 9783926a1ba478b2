//! IDX files come into stores byte for byte, and what is no whole IDX file leaves nothing behind.
#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::{Compression, write::GzEncoder};
use loaderx_core::convert::{Done, Format, IdxHeader, ImportOptions, import_idx, import_streams};
use loaderx_core::format::FormatVersion;
use loaderx_core::{Codec, DType, Dense, ErrorKind};
use proptest::prelude::*;
use tempfile::TempDir;

/// The bytes of an IDX file.
fn idx(code: u8, sides: &[u32], content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, sides.len() as u8];
    bytes.extend(sides.iter().flat_map(|side| side.to_be_bytes()));
    bytes.extend(content);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn dest(&self) -> PathBuf {
        self.dir.path().join("made/by/import")
    }

    /// The names in the directory, hidden ones included.
    fn names(&self) -> Vec<String> {
        names(self.dir.path())
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn content(path: &Path) -> (DType, Vec<usize>, Vec<u8>) {
    let dense = Dense::open(path).unwrap();
    let all: Vec<u64> = (0..dense.len()).collect();
    let batch = dense.batch(&all).unwrap();
    (dense.dtype(), batch.shape().to_vec(), batch.data().as_bytes().to_vec())
}

#[test]
fn images_and_labels_come_in_plain_and_compressed() {
    let place = Place::new();
    let pixels: Vec<u8> = (0..7 * 3 * 2).collect();
    for (name, bytes) in [
        ("plain", idx(8, &[7, 3, 2], &pixels)),
        ("train-images-idx3-ubyte.gz", gzip(&idx(8, &[7, 3, 2], &pixels))),
    ] {
        let source = place.file(name, &bytes);
        let dest = place.dir.path().join(format!("{name}.store"));
        let done = import_idx(&source, &dest, &ImportOptions::new().codec(Codec::zstd())).unwrap();
        assert_eq!(done.records, 7);
        assert_eq!(done.streams[0].codec, Codec::zstd());
        assert_eq!(content(&dest), (DType::U8, vec![7, 3, 2], pixels.clone()));
        assert_eq!(IdxHeader::read(&source).unwrap().item_shape, [3, 2]);
    }
    assert_eq!(place.names().len(), 4, "{:?}", place.names());
}

#[test]
fn every_element_type_is_turned_to_little_endian() {
    let place = Place::new();
    for (code, dtype, big, little) in [
        (0x09, DType::I8, vec![0xfe], vec![0xfe]),
        (0x0b, DType::I16, vec![1, 2], vec![2, 1]),
        (0x0c, DType::I32, vec![1, 2, 3, 4], vec![4, 3, 2, 1]),
        (0x0d, DType::F32, 1.5_f32.to_be_bytes().to_vec(), 1.5_f32.to_le_bytes().to_vec()),
        (0x0e, DType::F64, 1.5_f64.to_be_bytes().to_vec(), 1.5_f64.to_le_bytes().to_vec()),
    ] {
        let source = place.file("x.idx", &idx(code, &[2], &big.repeat(2)));
        let dest = place.dir.path().join(dtype.name());
        import_idx(&source, &dest, &ImportOptions::new()).unwrap();
        assert_eq!(content(&dest), (dtype, vec![2], little.repeat(2)));
    }
}

#[test]
fn files_without_records_or_without_elements_are_kept_as_what_they_are() {
    let place = Place::new();
    for (sides, shape, format) in [
        (&[0][..], vec![0], FormatVersion::V3),
        (&[0, 3], vec![0, 3], FormatVersion::V3),
        (&[3, 0], vec![3, 0], FormatVersion::V4),
    ] {
        let source = place.file("x.idx", &idx(8, sides, &[]));
        let dest = place.dir.path().join(format!("{sides:?}"));
        let done = import_idx(&source, &dest, &ImportOptions::new()).unwrap();
        assert_eq!(done.records, u64::from(sides[0]));
        assert_eq!(done.streams[0].format, format);
        assert_eq!(done.streams[0].notes.len(), usize::from(format == FormatVersion::V4));
        assert_eq!(content(&dest).1, shape);
    }
}

#[test]
fn every_cut_of_a_file_is_refused_with_its_numbers_and_leaves_nothing() {
    let whole = idx(0x0b, &[3, 2], &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]);
    for compressed in [false, true] {
        for cut in 0..whole.len() {
            let place = Place::new();
            let part = &whole[..cut];
            let source = place.file("x", &if compressed { gzip(part) } else { part.to_vec() });
            let error = import_idx(&source, place.dest(), &ImportOptions::new()).unwrap_err();
            assert!(error.is_corrupt(), "cut at {cut}: {error}");
            assert_eq!(error.path(), Some(&*source), "{error}");
            if cut >= 12 {
                assert!(error.message().contains("12 bytes"), "{error}");
                assert!(error.message().contains(&(cut - 12).to_string()), "{error}");
            }
            assert_eq!(place.names(), ["x"]);
        }
    }
}

#[test]
fn every_cut_of_a_compressed_file_is_refused() {
    let whole = gzip(&idx(8, &[300], &(0..300).map(|i| (i * i % 251) as u8).collect::<Vec<_>>()));
    for cut in 0..whole.len() {
        let place = Place::new();
        let source = place.file("x.gz", &whole[..cut]);
        let error = import_idx(&source, place.dest(), &ImportOptions::new()).unwrap_err();
        assert!(error.is_corrupt(), "cut at {cut}: {error}");
        assert_eq!(place.names(), ["x.gz"]);
    }
}

#[test]
fn trailing_bytes_are_refused() {
    let mut bytes = idx(8, &[2], &[1, 2]);
    bytes.push(3);
    for file in [bytes.clone(), gzip(&bytes)] {
        let place = Place::new();
        let error = import_idx(place.file("x", &file), place.dest(), &ImportOptions::new()).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        assert_eq!(place.names(), ["x"]);
    }
}

#[test]
fn foreign_files_are_named_as_such() {
    for (bytes, saying) in [
        (b"\x89PNG\r\n\x1a\n".to_vec(), "89, 50, 4e, 47"),
        (idx(0x0a, &[1], &[1]), "0x0a"),
        (idx(8, &[], &[]), "0 dimensions"),
        (idx(8, &[1; 9], &[1]), "9 dimensions"),
        (Vec::new(), "0 bytes"),
        (idx(0x0e, &[u32::MAX; 3], &[]), "too large"),
    ] {
        let place = Place::new();
        let source = place.file("x", &bytes);
        let error = import_idx(&source, place.dest(), &ImportOptions::new()).unwrap_err();
        assert!(error.to_string().contains(saying), "{error}");
        assert_eq!(error.path(), Some(&*source), "{error}");
        assert_eq!(place.names(), ["x"]);
    }
}

#[test]
fn a_missing_file_is_not_found() {
    let place = Place::new();
    let error = import_idx(place.dir.path().join("x"), place.dest(), &ImportOptions::new()).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert!(place.names().is_empty());
}

#[test]
fn streams_of_different_counts_are_refused_before_anything_is_written() {
    let place = Place::new();
    let images = place.file("images", &idx(8, &[3, 1, 1], &[1, 2, 3]));
    let labels = place.file("labels", &gzip(&idx(8, &[2], &[1, 2])));
    let files = [("image", &images), ("label", &labels)];
    let error = import_streams(&files, place.dest(), &ImportOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("3 records") && error.message().contains("has 2"), "{error}");
    assert_eq!(place.names(), ["images", "labels"]);
}

#[test]
fn idx_is_told_by_its_content_whatever_its_name() {
    let place = Place::new();
    let bytes = idx(8, &[2, 1], &[1, 2]);
    for content in [bytes.clone(), gzip(&bytes)] {
        assert_eq!(Format::detect(place.file("x", &content)).unwrap(), Format::Idx);
    }
    for foreign in [&[0, 0, 7, 1, 0, 0, 0, 0][..], &[0, 0, 8, 9, 0, 0], &[0, 1, 8, 1, 0], &[0, 0, 8], &[]] {
        let error = Format::detect(place.file("x", foreign)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{foreign:?}");
    }
}

#[test]
fn streams_become_stores_of_one_directory() {
    let place = Place::new();
    let images = place.file("images", &idx(8, &[3, 1, 1], &[1, 2, 3]));
    let labels = place.file("labels", &gzip(&idx(8, &[3], &[4, 5, 6])));
    let files = [("image", &images), ("label", &labels)];
    let done = import_streams(&files, place.dest(), &ImportOptions::new()).unwrap();
    assert_eq!((done.records, done.streams.len()), (3, 2));
    assert_eq!(names(&place.dest()), ["image", "label"]);
    assert_eq!(content(&place.dest().join("label")).2, [4, 5, 6]);
}

#[test]
fn an_existing_store_file_or_full_directory_is_never_touched() {
    let place = Place::new();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    let dest = place.dest();
    import_idx(&source, &dest, &ImportOptions::new()).unwrap();
    let other = place.file("y", &idx(8, &[1], &[9]));
    let error = import_idx(&other, &dest, &ImportOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.message().contains("existing store"), "{error}");
    assert_eq!(content(&dest).2, [1, 2]);

    let error = import_idx(&other, &source, &ImportOptions::new()).unwrap_err();
    assert!(error.message().contains("existing file"), "{error}");
    let error = import_idx(&other, place.dir.path(), &ImportOptions::new()).unwrap_err();
    assert!(error.message().contains("not empty"), "{error}");
    assert_eq!(place.names(), ["made", "x", "y"]);
}

#[test]
fn an_empty_directory_may_become_the_store() {
    let place = Place::new();
    fs::create_dir_all(place.dest()).unwrap();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    import_idx(&source, place.dest(), &ImportOptions::new()).unwrap();
    assert_eq!(content(&place.dest()).2, [1, 2]);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let place = Place::new();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    let dest = place.dir.path().join("store");
    let left = place.dir.path().join(".store.loaderx-partial");
    for files in [&[][..], &["lock"], &["lock", "data/0.zr"]] {
        fs::create_dir_all(left.join("data")).unwrap();
        for file in files {
            fs::write(left.join(file), b"half").unwrap();
        }
        import_idx(&source, &dest, &ImportOptions::new()).unwrap();
        assert_eq!(place.names(), ["store", "x"]);
        fs::remove_dir_all(&dest).unwrap();
    }
}

#[test]
fn what_others_left_under_that_name_is_kept_and_refused() {
    let place = Place::new();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    let left = place.dir.path().join(".store.loaderx-partial");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("thesis.tex"), b"years of work").unwrap();
    let error = import_idx(&source, place.dir.path().join("store"), &ImportOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(error.path(), Some(&*left));
    assert_eq!(names(&left), ["thesis.tex"]);
}

#[test]
fn a_second_run_for_the_same_destination_is_locked_out() {
    let place = Place::new();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    let dest = place.dest();
    let (inner_source, inner_dest) = (source.clone(), dest.clone());
    let seen = Arc::new(Mutex::new(None));
    let inner_seen = Arc::clone(&seen);
    let options = ImportOptions::new().progress(move |_: &Done| {
        let error = import_idx(&inner_source, &inner_dest, &ImportOptions::new()).unwrap_err();
        *inner_seen.lock().unwrap() = Some(error.kind());
        ControlFlow::Continue(())
    });
    import_idx(&source, &dest, &options).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(ErrorKind::Locked));
    assert_eq!(content(&dest).2, [1, 2]);
}

#[test]
fn progress_counts_to_the_totals_and_a_cancelled_import_leaves_nothing() {
    let place = Place::new();
    let bytes = vec![7; 10 << 20];
    let source = place.file("x.gz", &gzip(&idx(8, &[10 << 10, 1 << 10], &bytes)));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&reports);
    let options = ImportOptions::new().progress(move |done: &Done| {
        heard.lock().unwrap().push(*done);
        ControlFlow::Continue(())
    });
    import_idx(&source, place.dest(), &options).unwrap();
    let reports = reports.lock().unwrap().clone();
    assert!(reports.len() > 1);
    assert!(reports.is_sorted_by_key(|done| done.records));
    let last = reports.last().unwrap();
    assert_eq!((last.records, last.bytes), (10 << 10, 10 << 20));
    assert_eq!((last.total_records, last.total_bytes), (Some(10 << 10), Some(10 << 20)));

    let place = Place::new();
    let source = place.file("x.gz", &gzip(&idx(8, &[10 << 10, 1 << 10], &bytes)));
    let options = ImportOptions::new().progress(|_: &Done| ControlFlow::Break(()));
    let error = import_idx(&source, place.dest(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(place.names(), ["x.gz"]);
}

#[test]
fn a_panic_in_the_progress_leaves_nothing() {
    let place = Place::new();
    let source = place.file("x", &idx(8, &[2], &[1, 2]));
    let dest = place.dest();
    let run = std::thread::spawn(move || {
        let options = ImportOptions::new().progress(|_: &Done| panic!("by the user"));
        import_idx(&source, &dest, &options)
    });
    assert!(run.join().is_err());
    assert_eq!(place.names(), ["x"]);
}

#[test]
fn records_beyond_version_3_choose_version_4_by_themselves_or_are_refused() {
    let place = Place::new();
    let large = (1 << 20) + 1;
    let source = place.file("x", &idx(8, &[2, large], &vec![5; 2 * large as usize]));
    let options = ImportOptions::new().format(FormatVersion::V3);
    let error = import_idx(&source, place.dest(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.message().contains("1048577"), "{error}");
    let done = import_idx(&source, place.dest(), &ImportOptions::new()).unwrap();
    assert_eq!(done.streams[0].format, FormatVersion::V4);
    assert!(done.streams[0].notes[0].contains("1048577"), "{:?}", done.streams[0].notes);
    assert_eq!(content(&place.dest()).1, [2, large as usize]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The oracle reads the whole file at once and knows only one-byte elements.
    #[test]
    fn any_shape_of_bytes_comes_in_as_it_is(
        sides in prop::collection::vec(0_u32..6, 1..5),
        compressed: bool,
        seed: u8,
    ) {
        let place = Place::new();
        let size: u32 = sides.iter().product();
        let bytes: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let file = idx(8, &sides, &bytes);
        let source = place.file("x", &if compressed { gzip(&file) } else { file });
        import_idx(&source, place.dest(), &ImportOptions::new()).unwrap();
        let shape: Vec<usize> = sides.iter().map(|&side| side as usize).collect();
        prop_assert_eq!(content(&place.dest()), (DType::U8, shape, bytes));
    }
}
