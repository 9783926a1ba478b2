//! Accuracy on the test images.

use burn::module::Module;
use burn::tensor::Device;

use crate::Result;
use crate::args::Args;
use crate::batches::{self, Digits};
use crate::dataset::Mnist;
use crate::model::Network;

/// Counts of one evaluation.
pub struct Accuracy {
    /// Images whose digit was found.
    pub right: u64,
    /// Images.
    pub all: u64,
}

/// Runs the network over every test image once.
pub fn evaluate(network: &Network, mnist: &Mnist, args: &Args, device: &Device) -> Result<Accuracy> {
    // Without gradients.
    let network = network.valid();
    let mut accuracy = Accuracy { right: 0, all: 0 };
    for batch in batches::test(mnist, args)? {
        let batch = Digits::new(batch?, device)?;
        accuracy.all += batch.labels.dims()[0] as u64;
        let found = network.forward(batch.images).argmax(1).flatten::<1>(0, 1);
        let right = found.equal(batch.labels).int().sum().into_scalar::<i64>();
        accuracy.right += u64::try_from(right)?;
    }
    Ok(accuracy)
}

impl std::fmt::Display for Accuracy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.right as f64 / self.all as f64;
        write!(f, "test accuracy: {percent:.2} % ({} of {})", self.right, self.all)
    }
}
