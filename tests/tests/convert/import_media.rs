//! Folders of images, WebDataset shards and plain files come in as they are.

use std::fs;

use loaderx_core::convert::{Dataset, Format, ImportOptions, import_files, import_images, import_webdataset};
use loaderx_core::format::FormatVersion;
use loaderx_core::{DType, ErrorKind};
use loaderx_tests::import::{TEXTS, check_refused, content, fixture};

#[test]
fn class_folders_become_images_and_labels() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    assert_eq!(Format::detect(fixture("images")).unwrap(), Format::Images);
    let done = import_images(fixture("images"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 8);
    let (_, _, images) = content(dest.join("image"));
    assert_eq!(images[2], fs::read(fixture("images/ant/2.jpg")).unwrap());
    assert_eq!(images[7], fs::read(fixture("images/bee-fly/1.png")).unwrap());
    let labels = [0_u32, 0, 0, 1, 1, 1, 2, 2].map(|label| label.to_le_bytes().to_vec()).to_vec();
    assert_eq!(content(dest.join("label")), (DType::U32, vec![], labels));
    let classes = fs::read_to_string(dest.join("classes.json")).unwrap();
    let classes: Vec<String> = serde_json::from_str(&classes).unwrap();
    assert_eq!(classes, ["ant", "bee", "bee-fly"]);
}

#[test]
fn decoded_images_of_the_wanted_size_are_the_pixels_that_were_saved() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    import_images(fixture("images"), &dest, &ImportOptions::new().resize_images(4, 6)).unwrap();
    let (dtype, shape, images) = content(dest.join("image"));
    assert_eq!((dtype, shape), (DType::U8, vec![4, 6, 3]));
    // PNG is lossless: what `make.py` computed is what must come out.
    let pixels = |seed: usize| (0..72).map(|i| ((i * 7 + seed) % 251) as u8).collect::<Vec<_>>();
    for (index, seed) in [(0, 0), (1, 1), (3, 10), (4, 11), (6, 20), (7, 21)] {
        assert_eq!(images[index], pixels(seed), "image {index}");
    }
    // One grey level stays one grey level at any size.
    assert_eq!(images[5], vec![200; 72]);
}

#[test]
fn files_that_are_no_images_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let inputs = tempfile::tempdir().unwrap();
    fs::create_dir(inputs.path().join("a")).unwrap();
    let result = import_images(inputs.path(), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["no images"]);
    fs::write(inputs.path().join("a/notes.txt"), "not pixels").unwrap();
    for options in [ImportOptions::new(), ImportOptions::new().resize_images(2, 2)] {
        check_refused(import_images(inputs.path(), &dest, &options), &dest, &["notes.txt", "no image"]);
    }
    let whole = fs::read(fixture("images/ant/0.png")).unwrap();
    fs::write(inputs.path().join("a/notes.txt"), &whole[..whole.len() / 2]).unwrap();
    let result = import_images(inputs.path(), &dest, &ImportOptions::new().resize_images(2, 2));
    assert_eq!(check_refused(result, &dest, &["notes.txt"]).kind(), ErrorKind::Corrupt);
    fs::write(inputs.path().join("top.png"), &whole).unwrap();
    let result = import_images(inputs.path(), &dest, &ImportOptions::new());
    check_refused(result, &dest, &["top.png", "class folder"]);
}

#[test]
fn shards_become_one_stream_for_each_extension() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    assert_eq!(Format::detect(fixture("shards")).unwrap(), Format::WebDataset);
    assert_eq!(Format::detect(fixture("shards/0.tar")).unwrap(), Format::WebDataset);
    let done = import_webdataset(fixture("shards"), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 6);
    let dataset = Dataset::open(&dest).unwrap();
    assert_eq!(dataset.names().collect::<Vec<_>>(), ["cls", "key", "seg.png", "txt"]);
    let keys = ["v1.0/00", "v1.0/01", "v1.0/02", "v1.0/10", "v1.0/11", "v1.0/12"];
    assert_eq!(content(dest.join("key")).2, keys.map(|key| key.as_bytes().to_vec()));
    let seg = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]].map(|bytes| bytes.to_vec());
    assert_eq!(content(dest.join("seg.png")).2, seg);
    // The second text is empty, which only version 4 can hold; the others stay readable for Python.
    let formats = |name| done.streams.iter().find(|stream| stream.name == name).unwrap();
    assert_eq!(formats("txt").format, FormatVersion::V4);
    assert!(formats("txt").notes[0].contains("record 1 is empty"), "{:?}", formats("txt").notes);
    assert_eq!(formats("cls").format, FormatVersion::V3);
    assert_eq!(content(dest.join("txt")).2[2], TEXTS[2].as_bytes());
}

#[test]
fn samples_with_other_files_than_the_first_are_refused_by_key_or_filled() {
    let shard = |files: &[(&str, &str)]| {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let inputs = tempfile::tempdir().unwrap();
    let source = inputs.path().join("x.tar");
    for (files, saying) in [
        (&[("1.a", "x"), ("1.b", "y"), ("2.a", "z")][..], ["\"2\"", "\"b\""]),
        (&[("1.a", "x"), ("2.a", "y"), ("2.b", "z")], ["\"2\"", "\"b\""]),
        (&[("1.a", "x"), ("1.a", "y")], ["\"1\"", "two files"]),
    ] {
        fs::write(&source, shard(files)).unwrap();
        let result = import_webdataset(&source, &dest, &ImportOptions::new());
        check_refused(result, &dest, &[saying[0], saying[1], "x.tar"]);
    }
    let whole = shard(&[("1.a", "x"), ("1.b", "y"), ("2.a", "z")]);
    for cut in [100, 512, 513, 1400] {
        fs::write(&source, &whole[..cut]).unwrap();
        let result = import_webdataset(&source, &dest, &ImportOptions::new());
        if cut != 512 {
            assert!(check_refused(result, &dest, &["x.tar"]).is_corrupt(), "cut at {cut}");
        } else {
            check_refused(result, &dest, &["x.tar"]);
        }
    }
    fs::write(&source, &whole).unwrap();
    import_webdataset(&source, &dest, &ImportOptions::new().fill_nulls(0.0)).unwrap();
    assert_eq!(content(dest.join("b")).2, [b"y".to_vec(), Vec::new()]);
}

#[test]
fn plain_files_are_records_with_their_names() {
    let inputs = tempfile::tempdir().unwrap();
    fs::create_dir_all(inputs.path().join("b/c")).unwrap();
    fs::write(inputs.path().join("b/c/2.txt"), "two").unwrap();
    fs::write(inputs.path().join("a.txt"), "one").unwrap();
    fs::write(inputs.path().join(".hidden"), "no").unwrap();
    let large = vec![1; (1 << 20) + 1];
    fs::write(inputs.path().join("z"), &large).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let done = import_files(inputs.path(), &dest, &ImportOptions::new()).unwrap();
    assert_eq!(done.records, 3);
    let names = ["a.txt", "b/c/2.txt", "z"].map(|name| name.as_bytes().to_vec());
    assert_eq!(content(dest.join("name")).2, names);
    // The third file is too large for version 3: the first two move along.
    assert_eq!(done.streams[0].format, FormatVersion::V4);
    assert_eq!(content(dest.join("content")).2, [b"one".to_vec(), b"two".to_vec(), large]);

    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("x");
    let result = import_files(inputs.path(), &dest, &ImportOptions::new().format(FormatVersion::V3));
    check_refused(result, &dest, &["1048577", "version 4"]);
}
