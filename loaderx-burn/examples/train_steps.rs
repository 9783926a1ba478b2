//! burn's `SupervisedTraining` over `StepLoader`: an endless, resumable stream for training, an exact pass for
//! validation.
//!
//! ```sh
//! cargo run -p loaderx-burn --features train --example train_steps
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

mod support;

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use burn::train::metric::LossMetric;
use burn::train::{Learner, SupervisedTraining};
use loaderx_burn::StepLoader;
use loaderx_core::Loader;
use loaderx_core::sampler::{Cyclic, Pass, Sampler, split};
use support::{Model, stores, sums};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let (inputs, targets) = stores(dir.path(), 1000)?;
    let records = inputs.len();

    // The same streams twice; what differs is which records are drawn, and in which order.
    let streams = Loader::builder().stream("input", inputs).stream("sum", targets).workers(1);
    let [train, valid] = split(records, [0.9, 0.1], 7)?;
    let train = streams.clone().sampler(Cyclic::new(train.len(), 32, 7)?.over(train)?);
    let valid = streams.sampler(Pass::new(valid.len(), 32)?.over(valid)?);

    // An epoch of 20 steps is the interval of validation and checkpoints, whatever the size of the data.
    let train = Arc::new(StepLoader::with_steps_per_epoch(train, 20, sums)?);
    let valid = Arc::new(StepLoader::new(valid, sums)?);
    println!("{} training items in an epoch, {} to validate on", train.num_items(), valid.num_items());

    let device = Device::flex().autodiff();
    device.seed(1);
    let learner = Learner::new(Model::new(&device), AdamConfig::new().init(), 0.05);
    // To go on from the checkpoint of epoch n: `.checkpoint(n)` here and `.skip_epochs(n)` on the train loader.
    let result = SupervisedTraining::new(dir.path().join("run"), train.clone(), valid)
        .metric_train_numeric(LossMetric::new())
        .metric_valid_numeric(LossMetric::new())
        .with_default_checkpointers()
        .num_epochs(5)
        .launch(learner);
    if let Some(error) = result.error {
        return Err(error.to_string().into());
    }
    println!("trained to step {}: {}", train.state()?.step(), result.model);
    Ok(())
}
