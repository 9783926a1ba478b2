//! What a loader is built from is checked before a thread starts, and errors name both sides.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Cyclic, Pass, Sequential};
use loaderx_core::{Codec, DType, DenseWriter, ErrorKind, Loader};
use loaderx_tests::loading::{Numbers, numbers};

fn refused(result: loaderx_core::Result<Loader>, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word}");
    }
}

#[test]
fn streams_of_one_name_or_different_lengths_are_refused() {
    let sampler = || Sequential::new(4, 2).unwrap();
    let builder = Loader::builder().stream("x", Numbers::new(4)).stream("x", Numbers::new(4));
    refused(builder.sampler(sampler()).build(), &["\"x\""]);
    let builder = Loader::builder().stream("x", Numbers::new(4)).stream("y", Numbers::new(5));
    refused(builder.sampler(sampler()).build(), &["\"x\"", "4", "\"y\"", "5"]);
    refused(Loader::builder().sampler(sampler()).build(), &["no stream"]);
}

#[test]
fn a_loader_without_a_sampler_or_with_one_that_is_too_long_is_refused() {
    refused(Loader::builder().stream("x", Numbers::new(4)).build(), &["no sampler"]);
    let builder = Loader::builder().stream("x", Numbers::new(4)).sampler(Sequential::new(5, 2).unwrap());
    refused(builder.build(), &["5", "4"]);
}

#[test]
fn no_prefetch_is_refused_with_workers_and_meaningless_without() {
    let builder = || Loader::builder().stream("x", Numbers::new(4)).sampler(Sequential::new(4, 2).unwrap());
    refused(builder().workers(2).prefetch(0).build(), &["2 workers", "workers(0)"]);
    assert_eq!(builder().workers(0).prefetch(0).build().unwrap().next().unwrap().unwrap().records(), 2);
}

#[test]
fn a_batch_names_its_streams_and_gives_each_column_once() {
    let mut loader = Loader::builder()
        .stream("x", Numbers::new(4))
        .stream("y", Numbers { len: 4, scale: 10 })
        .sampler(Sequential::new(4, 3).unwrap())
        .seed(5)
        .build()
        .unwrap();
    let mut batch = loader.next().unwrap().unwrap();
    assert_eq!(batch.names().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!((batch.step(), batch.seed(), batch.records(), batch.bytes()), (0, 5, 3, 48));
    assert_eq!(numbers(&batch, "x"), [0, 1, 2]);
    assert_eq!(batch.take_dense("y").unwrap().into_vec::<u64>().unwrap().0, [0, 10, 20]);
    assert!(batch.take("y").unwrap_err().to_string().contains("already taken"));
    let error = batch.column("z").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"x\", \"y\""), "{error}");
    let rest = batch.into_columns();
    assert_eq!(rest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x"]);
}

#[test]
fn a_store_on_disk_is_delivered_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let images = DenseWriter::create(dir.path().join("images"), DType::U8, &[2, 2], Codec::zstd()).unwrap();
    images.append((0..40).collect::<Vec<u8>>()).unwrap();
    let labels = DenseWriter::create(dir.path().join("labels"), DType::I64, &[], Codec::Raw).unwrap();
    labels.append((0..10).map(|label| label * 7).collect::<Vec<i64>>()).unwrap();
    let mut loader = Loader::builder()
        .stream("image", images.finish().unwrap())
        .stream("label", labels.finish().unwrap())
        .sampler(Cyclic::new(10, 4, 3).unwrap())
        .workers(2)
        .build()
        .unwrap();
    for step in 0..25 {
        let mut batch = loader.next().unwrap().unwrap();
        assert_eq!(batch.step(), step);
        let indices = batch.indices().to_vec();
        let (pixels, shape) = batch.take_dense("image").unwrap().into_vec::<u8>().unwrap();
        let (labels, _) = batch.take_dense("label").unwrap().into_vec::<i64>().unwrap();
        assert_eq!(shape, [4, 2, 2]);
        for (row, &index) in indices.iter().enumerate() {
            let first = u8::try_from(index).unwrap() * 4;
            assert_eq!(pixels[row * 4..][..4], [first, first + 1, first + 2, first + 3]);
            assert_eq!(labels[row], i64::try_from(index).unwrap() * 7);
        }
    }
}

#[test]
fn a_pass_delivers_every_record_once_and_leaves_the_training_where_it_was() {
    for workers in [0, 1, 3] {
        let mut loader = Loader::builder()
            .stream("x", Numbers::new(10))
            .sampler(Cyclic::new(10, 5, 1).unwrap())
            .workers(workers)
            .build()
            .unwrap();
        let straight: Vec<Vec<u64>> =
            (&mut loader).take(8).map(|batch| numbers(&batch.unwrap(), "x")).collect();
        loader.seek(3);
        for batch in [1, 3, 4, 10, 11] {
            let pass = loader.pass(batch).unwrap();
            assert_eq!((pass.len(), pass.records()), (10_usize.div_ceil(batch), 10));
            let batches: Vec<Vec<u64>> = pass.map(|batch| numbers(&batch.unwrap(), "x")).collect();
            assert!(batches.iter().rev().skip(1).all(|whole| whole.len() == batch));
            assert_eq!(batches.concat(), (0..10).collect::<Vec<_>>());
            assert_eq!(loader.step(), 3);
        }
        // Left early, and forgotten.
        assert_eq!(loader.pass(4).unwrap().next().unwrap().unwrap().indices(), [0, 1, 2, 3]);
        std::mem::forget(loader.pass(4).unwrap());
        let rest: Vec<Vec<u64>> = (&mut loader).take(5).map(|batch| numbers(&batch.unwrap(), "x")).collect();
        assert_eq!(rest, straight[3..]);
    }
}

#[test]
fn a_pass_needs_an_end() {
    let mut loader = Loader::builder()
        .stream("x", Numbers::new(10))
        .sampler(Pass::new(10, 4).unwrap())
        .workers(1)
        .build()
        .unwrap();
    assert!(loader.pass_with(Sequential::new(10, 2).unwrap()).is_err());
    assert!(loader.pass_with(Pass::new(11, 2).unwrap()).is_err());
    assert!(loader.pass(0).is_err());
    // A finite sampler ends the loader itself.
    assert_eq!(loader.size_hint(), (3, Some(3)));
    assert_eq!((&mut loader).map(|batch| batch.unwrap().records()).collect::<Vec<_>>(), [4, 4, 2]);
    assert!(loader.next().is_none());
    loader.seek(2);
    assert_eq!(loader.next().unwrap().unwrap().indices(), [8, 9]);
}
