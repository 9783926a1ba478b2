//! What was appended to a dense store is what a batch holds.
#![forbid(unsafe_code)]

use loaderx_core::view::{Request, Source};
use loaderx_core::{Codec, DType, Dense, DenseWriter, ErrorKind, Literals};

#[test]
fn several_threads_make_the_same_dense_batch_and_fail_at_the_same_record() {
    let raw_literals = Codec::zstd().with_literals(Literals::Raw);
    for codec in [Codec::Raw, Codec::zstd(), raw_literals] {
        let dir = tempfile::tempdir().unwrap();
        let writer = DenseWriter::create(dir.path().join("x"), DType::I32, &[500], codec).unwrap();
        writer.append((0..1000 * 500).map(|i| i / 3).collect::<Vec<i32>>()).unwrap();
        let dense = writer.finish().unwrap();
        let indices: Vec<u64> = (0..777).map(|i| i * 7919 % 1000).collect();
        let expected = dense.batch(&indices).unwrap();
        let beyond: Vec<u64> = indices.iter().map(|&index| index + 223).collect();
        for threads in [1, 2, 3, 64] {
            let batch = dense.gather(&Request::new(&indices).threads(threads)).unwrap().into_dense().unwrap();
            assert_eq!(batch.shape(), expected.shape());
            assert!(batch.data().as_bytes() == expected.data().as_bytes(), "{codec:?}, {threads} threads");
            let error = dense.gather(&Request::new(&beyond).threads(threads)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
        }
        assert!(dense.gather(&Request::new(&[]).threads(3)).unwrap().into_dense().unwrap().records() == 0);
    }
}

#[test]
fn a_batch_holds_the_appended_records_in_the_order_asked_for() {
    for codec in [Codec::Raw, Codec::zstd()] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let writer = DenseWriter::create(&path, DType::F32, &[2, 3], codec).unwrap();
        let values: Vec<f32> = (0..600_u16).map(|i| f32::from(i / 7)).collect();
        assert_eq!(writer.append(&values[..300]).unwrap(), 0);
        assert_eq!(writer.append(&values[300..]).unwrap(), 50);
        let dense = writer.finish().unwrap();
        drop(dense);

        let dense = Dense::open(&path).unwrap();
        let indices = [99, 0, 50, 50, 7];
        let batch = dense.batch(&indices).unwrap();
        assert_eq!(batch.shape(), [5, 2, 3]);
        let expected: Vec<f32> =
            indices.iter().flat_map(|&i| values[i as usize * 6..][..6].to_vec()).collect();
        assert_eq!(batch.into_vec::<f32>().unwrap().0, expected);
        assert_eq!(dense.batch(&[100]).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}
