//! A model and stores for the examples: four numbers, whose weighted sum is to be learned.

use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use burn::train::{InferenceStep, RegressionOutput, TrainOutput, TrainStep};
use loaderx_burn::TakeTensor;
use loaderx_core::loader::Batch;
use loaderx_core::{Codec, DType, Dense, DenseWriter, Result};
use std::path::Path;

/// The weights to be found.
const WEIGHTS: [f32; 4] = [1.0, -2.0, 0.5, 3.0];

/// What the model is trained on.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// `[records, 4]`.
    pub(crate) inputs: Tensor<2>,
    /// `[records, 1]`.
    pub(crate) sums: Tensor<2>,
}

/// Makes the tensors of a batch.
pub(crate) fn sums(mut batch: Batch, device: &Device) -> Result<Sums> {
    Ok(Sums { inputs: batch.take_float("input", device)?, sums: batch.take_float("sum", device)? })
}

/// Writes `records` records into two stores below `dir`.
pub(crate) fn stores(dir: &Path, records: u16) -> Result<(Dense, Dense)> {
    let inputs = DenseWriter::create(dir.join("input"), DType::F32, &[4], Codec::Raw)?;
    let sums = DenseWriter::create(dir.join("sum"), DType::F32, &[1], Codec::Raw)?;
    for record in 0..records {
        let input: [f32; 4] =
            std::array::from_fn(|i| (f32::from(record) * 0.37 + i as f32).sin() * (i as f32 + 1.0).sqrt());
        inputs.append(input)?;
        sums.append([input.iter().zip(WEIGHTS).map(|(x, weight)| x * weight).sum::<f32>()])?;
    }
    Ok((inputs.finish()?, sums.finish()?))
}

/// One linear layer.
#[derive(Module, Debug)]
pub(crate) struct Model {
    layer: Linear,
}

impl Model {
    /// A model with random weights.
    pub(crate) fn new(device: &Device) -> Self {
        Self { layer: LinearConfig::new(4, 1).init(device) }
    }

    fn output(&self, batch: Sums) -> RegressionOutput {
        let output = self.layer.forward(batch.inputs);
        let loss = MseLoss::new().forward(output.clone(), batch.sums.clone(), Reduction::Mean);
        RegressionOutput::new(loss, output, batch.sums)
    }
}

impl TrainStep for Model {
    type Input = Sums;
    type Output = RegressionOutput;

    fn step(&self, batch: Sums) -> TrainOutput<RegressionOutput> {
        let output = self.output(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Model {
    type Input = Sums;
    type Output = RegressionOutput;

    fn step(&self, batch: Sums) -> RegressionOutput {
        self.output(batch)
    }
}
