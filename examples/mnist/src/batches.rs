//! Batches for the network: normalised images and labels.

use burn::tensor::{Device, Int, Tensor};
use loaderx_burn::TakeTensor;
use loaderx_core::loader::{Batch, Loader, LoaderBuilder};
use loaderx_core::sampler::{Cyclic, Pass};
use loaderx_core::{DType, LoaderState};

use crate::Result;
use crate::args::Args;
use crate::dataset::{Labelled, Mnist};

/// Mean and standard deviation of the training images' pixels, from 0 to 1.
const MEAN: f64 = 0.1307;
const STD: f64 = 0.3081;

/// Images in a step of the evaluation.
const TEST_BATCH: usize = 500;

/// A batch on the device.
pub struct Digits {
    /// Normalised, `[images, 1, 28, 28]`.
    pub images: Tensor<4>,
    /// The digits, `[images]`.
    pub labels: Tensor<1, Int>,
}

impl Digits {
    /// Runs on the training thread: what the workers gathered becomes tensors, nothing is copied.
    pub fn new(mut batch: Batch, device: &Device) -> Result<Self> {
        let images = batch.take_float::<3>("image", device)?;
        Ok(Self { images: images.unsqueeze_dim(1), labels: batch.take_int("label", device)? })
    }
}

/// Bytes become what the network computes with while they are gathered, in the same pass.
fn streams(part: &Labelled, args: &Args) -> Result<LoaderBuilder> {
    let images = part.images.to_f32().scale(1.0 / 255.0)?.normalize(MEAN, STD)?;
    let labels = part.labels.convert(DType::I32)?;
    Ok(Loader::builder().stream("image", images).stream("label", labels).workers(args.workers))
}

/// The endless loader of the training images, from its start or from where `state` was saved.
pub fn train(mnist: &Mnist, args: &Args, state: Option<&LoaderState>) -> Result<Loader> {
    let sampler = Cyclic::new(mnist.train.images.len(), args.batch_size, args.seed)?;
    let mut builder = streams(&mnist.train, args)?.sampler(sampler).seed(args.seed);
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    Ok(builder.build()?)
}

/// Every test image once.
pub fn test(mnist: &Mnist, args: &Args) -> Result<Loader> {
    let sampler = Pass::new(mnist.test.images.len(), TEST_BATCH)?;
    Ok(streams(&mnist.test, args)?.sampler(sampler).build()?)
}
