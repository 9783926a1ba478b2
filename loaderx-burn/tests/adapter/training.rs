//! Training on batches from loaderx is training on the same tensors made by hand.

use crate::common::{points, stores};
use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor, TensorData};
use loaderx_burn::StepLoader;
use loaderx_core::sampler::Sequential;

/// One step of gradient descent towards the sum of the features; the weights after it.
fn step(model: &Linear, features: Tensor<2>) -> (Linear, Vec<f32>) {
    let targets = features.clone().sum_dim(1);
    let error = model.forward(features) - targets;
    let gradients = (error.clone() * error).mean().backward();
    let gradients = GradientsParams::from_grads(gradients, model);
    let model = SgdConfig::new().init().step(0.001, model.clone(), gradients);
    let weights = model.weight.val().into_data().try_to_vec::<f32>().unwrap();
    (model, weights)
}

#[test]
fn a_gradient_step_from_loaderx_equals_one_from_tensors_made_by_hand() {
    let device = Device::flex().autodiff();
    device.seed(5);
    let model = LinearConfig::new(2, 1).init(&device);
    let stores = stores(12);
    let builder = stores.streams().sampler(Sequential::new(12, 4).unwrap());
    let loader = StepLoader::new(builder, points).unwrap().on(device.clone());
    let (mut ours, mut by_hand) = (model.clone(), model);
    for (number, batch) in loader.iter().enumerate() {
        let elements: Vec<f32> =
            (4 * number..4 * number + 4).flat_map(|i| [i as f32, i as f32 + 0.5]).collect();
        let hand = Tensor::<2>::from_data(TensorData::new(elements, [4, 2]), &device);
        let (next, weights) = step(&ours, batch.unwrap().features);
        let (next_by_hand, expected) = step(&by_hand, hand);
        assert_ne!(weights, ours.weight.val().into_data().try_to_vec::<f32>().unwrap());
        assert_eq!(weights, expected);
        (ours, by_hand) = (next, next_by_hand);
    }
    assert_eq!(ours.num_params(), 3);
}
