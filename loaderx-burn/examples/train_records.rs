//! burn's `SupervisedTraining` over burn's own `DataLoaderBuilder`, with loaderx stores behind it.
//!
//! ```sh
//! cargo run -p loaderx-burn --features train --example train_records
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

mod support;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataset::transform::PartialDataset;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use burn::train::metric::LossMetric;
use burn::train::{Learner, SupervisedTraining};
use loaderx_burn::Records;
use support::{Model, stores, sums};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let (inputs, targets) = stores(dir.path(), 1000)?;

    let records = Records::builder().stream("input", inputs).stream("sum", targets).build()?;
    let batcher = records.batcher(sums);

    // From here on everything is burn's. Without workers: one gather a batch is fast, and a panic of the batcher
    // then reaches this thread.
    let train = DataLoaderBuilder::new(batcher.clone()).batch_size(32).shuffle(7).build(PartialDataset::new(
        records.clone(),
        0,
        900,
    ));
    let valid = DataLoaderBuilder::new(batcher).batch_size(32).build(PartialDataset::new(records, 900, 1000));

    let device = Device::flex().autodiff();
    device.seed(1);
    let learner = Learner::new(Model::new(&device), AdamConfig::new().init(), 0.05);
    let result = SupervisedTraining::new(dir.path().join("run"), train, valid)
        .metric_train_numeric(LossMetric::new())
        .metric_valid_numeric(LossMetric::new())
        .with_default_checkpointers()
        .num_epochs(5)
        .launch(learner);
    if let Some(error) = result.error {
        return Err(error.to_string().into());
    }
    println!("trained: {}", result.model);
    Ok(())
}
