//! What was appended to a dense store is what a batch holds.
#![forbid(unsafe_code)]

use loaderx_core::{Codec, DType, Dense, DenseWriter, ErrorKind};

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
