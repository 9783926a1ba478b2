//! Small stores for the tests.

use burn::tensor::{Device, Int, Tensor};
use loaderx_burn::TakeTensor;
use loaderx_core::loader::{Batch, Loader, LoaderBuilder};
use loaderx_core::{Codec, DType, Dense, DenseWriter};
use tempfile::TempDir;

/// Records `i` with the features `[i, i + 0.5]` and the index `i` itself.
pub(crate) struct Stores {
    // Keeps the folder until the stores are done with.
    _dir: TempDir,
    pub(crate) features: Dense,
    pub(crate) numbers: Dense,
}

pub(crate) fn stores(records: usize) -> Stores {
    let dir = tempfile::tempdir().unwrap();
    let features = DenseWriter::create(dir.path().join("features"), DType::F32, &[2], Codec::Raw).unwrap();
    let elements: Vec<f32> = (0..records).flat_map(|i| [i as f32, i as f32 + 0.5]).collect();
    features.append(elements).unwrap();
    let numbers = DenseWriter::create(dir.path().join("numbers"), DType::I64, &[], Codec::Raw).unwrap();
    numbers.append((0..records as i64).collect::<Vec<_>>()).unwrap();
    let (features, numbers) = (features.finish().unwrap(), numbers.finish().unwrap());
    Stores { _dir: dir, features, numbers }
}

impl Stores {
    pub(crate) fn streams(&self) -> LoaderBuilder<Batch> {
        Loader::builder()
            .stream("features", self.features.clone())
            .stream("numbers", self.numbers.clone())
            .workers(2)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Points {
    pub(crate) features: Tensor<2>,
    pub(crate) numbers: Tensor<1, Int>,
}

pub(crate) fn points(mut batch: Batch, device: &Device) -> loaderx_core::Result<Points> {
    Ok(Points {
        features: batch.take_float("features", device)?,
        numbers: batch.take_int("numbers", device)?,
    })
}

/// The numbers of a batch, after a check that the features are those of the same records.
pub(crate) fn numbers(batch: &Points) -> Vec<i64> {
    let numbers = batch.numbers.to_data().try_to_vec::<i64>().unwrap();
    let features = batch.features.to_data().try_to_vec::<f32>().unwrap();
    let expected: Vec<f32> = numbers.iter().flat_map(|&i| [i as f32, i as f32 + 0.5]).collect();
    assert_eq!(features, expected);
    numbers
}
