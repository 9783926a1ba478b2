//! The network: two convolutions, two linear layers, 57,000 weights.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// Finds the digit in an image.
#[derive(Module, Debug)]
pub struct Network {
    first: Conv2d,
    second: Conv2d,
    hidden: Linear,
    digits: Linear,
}

impl Network {
    /// A network with random weights.
    pub fn new(device: &Device) -> Self {
        // Strides of 2 in place of pooling: 28 -> 12 -> 5 pixels a side.
        Self {
            first: Conv2dConfig::new([1, 16], [5, 5]).with_stride([2, 2]).init(device),
            second: Conv2dConfig::new([16, 32], [3, 3]).with_stride([2, 2]).init(device),
            hidden: LinearConfig::new(32 * 5 * 5, 64).init(device),
            digits: LinearConfig::new(64, 10).init(device),
        }
    }

    /// A score for each digit, `[images, 10]`, from images of `[images, 1, 28, 28]`.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let features = relu(self.first.forward(images));
        let features = relu(self.second.forward(features)).flatten(1, 3);
        self.digits.forward(relu(self.hidden.forward(features)))
    }
}
