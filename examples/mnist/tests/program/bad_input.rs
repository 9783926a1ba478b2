//! Bad input is a clear error with path and numbers, and leaves nothing half-made behind.

use std::fs;

use crate::common::{self, Lab, idx, tree};

const IMAGES: &str = "train-images-idx3-ubyte";
const LABELS: &str = "train-labels-idx1-ubyte";

/// The error of a run over files of which one was spoilt; no store may exist afterwards.
fn refused(lab: &Lab) -> String {
    let error = lab.fail(&["--steps", "1"]);
    let left: Vec<_> = tree(&lab.path("stores")).into_iter().filter(|path| path.is_file()).collect();
    assert!(left.is_empty(), "{left:?} after {error}");
    assert!(!lab.path("stores/raw/train").exists());
    error
}

#[test]
fn a_truncated_file() {
    let lab = Lab::new();
    let bytes = fs::read(lab.file(IMAGES)).unwrap();
    lab.write(IMAGES, &bytes[..bytes.len() - 100]);
    let error = refused(&lab);
    assert!(error.contains(IMAGES) && error.contains("200"), "{error}");
}

#[test]
fn a_foreign_file_and_a_wrong_magic_number() {
    for foreign in [&b"PK\x03\x04 this is a zip archive"[..], &[0, 0, 8, 9, 1, 2, 3, 4], b""] {
        let lab = Lab::new();
        lab.write(IMAGES, foreign);
        let error = refused(&lab);
        assert!(error.contains(IMAGES), "{error}");
    }
}

#[test]
fn images_of_another_shape_or_type() {
    let lab = Lab::new();
    lab.write(IMAGES, &idx(&[200, 14, 14], &[0; 200 * 14 * 14]));
    let error = refused(&lab);
    assert!(error.contains(IMAGES) && error.contains("[14, 14]") && error.contains("[28, 28]"), "{error}");
}

#[test]
fn images_and_labels_of_different_counts() {
    let lab = Lab::new();
    lab.write(LABELS, &idx(&[199], &[0; 199]));
    let error = refused(&lab);
    assert!(error.contains("200") && error.contains("199"), "{error}");
}

#[test]
fn a_missing_file() {
    let lab = Lab::new();
    fs::remove_file(lab.file(LABELS)).unwrap();
    let error = refused(&lab);
    assert!(error.contains(LABELS), "{error}");
}

#[test]
fn a_data_folder_that_cannot_be_made() {
    let lab = Lab::new();
    // A file in the place of the folder: that stops every user, the administrator included.
    fs::write(lab.path("stores"), b"in the way").unwrap();
    let error = lab.fail(&["--steps", "1"]);
    assert!(error.contains(&lab.path("stores").display().to_string()), "{error}");
    assert_eq!(fs::read(lab.path("stores")).unwrap(), b"in the way");
}

#[test]
fn an_existing_store_of_another_shape() {
    let lab = Lab::new();
    lab.succeed(&["--steps", "1"]);
    let (images, labels) = (lab.path("stores/raw/train/image"), lab.path("stores/raw/train/label"));
    fs::remove_dir_all(&images).unwrap();
    let writer = loaderx_core::DenseWriter::create(
        &images,
        loaderx_core::DType::U8,
        &[14, 14],
        loaderx_core::Codec::Raw,
    );
    writer.unwrap().finish().unwrap();
    let before = tree(&lab.path("stores"));
    let error = lab.fail(&["--steps", "1"]);
    assert!(error.contains(&images.display().to_string()) && error.contains("--data-dir"), "{error}");
    assert!(error.contains("14") && error.contains("28"), "{error}");
    assert_eq!(tree(&lab.path("stores")), before);
    assert!(labels.exists());
}

#[test]
fn stores_that_were_made_from_other_files() {
    let lab = Lab::new();
    lab.succeed(&["--steps", "1"]);
    lab.write(IMAGES, &idx(&[10, 28, 28], &[0; 10 * 28 * 28]));
    let error = lab.fail(&["--steps", "1"]);
    assert!(error.contains("200") && error.contains("10"), "{error}");
}

#[test]
fn a_batch_larger_than_the_data_set() {
    let lab = Lab::new();
    let error = lab.fail(&["--steps", "1", "--batch-size", "201"]);
    assert!(error.contains("201") && error.contains("200"), "{error}");
}

#[test]
fn arguments_that_mean_nothing() {
    let lab = Lab::new();
    for arguments in [&["--lr", "-1"][..], &["--codec", "lz4"], &["--resume"], &["--steps", "many"]] {
        let output = lab.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        let error = common::text(&output.stderr);
        assert!(error.contains(arguments[0]), "{error}");
        assert!(!lab.path("stores").exists());
    }
}
