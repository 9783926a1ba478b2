use std::hint::black_box;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, InMemDataset};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use loaderx_core::Dense;

use crate::data::Data;
use crate::harness::{Outcome, System};
use crate::work::{Task, Work};

/// An item as burn's guide has it: pixels as floats, and the label.
#[derive(Clone, Debug)]
struct Item {
    image: [[f32; 28]; 28],
    label: u8,
}

/// A batch as tensors.
#[derive(Clone, Debug)]
pub(super) struct Tensors {
    images: Tensor<3>,
    labels: Tensor<1, Int>,
}

/// Some tensor operations for each item, then two concatenations: the way of burn's guide.
#[derive(Clone, Debug)]
struct Guide;

impl Batcher<Item, Tensors> for Guide {
    fn batch(&self, items: Vec<Item>, device: &Device) -> Tensors {
        let images = items
            .iter()
            .map(|item| Tensor::<2>::from_data(TensorData::from(item.image), device).reshape([1, 28, 28]))
            .map(|image| ((image / 255) - 0.1307) / 0.3081)
            .collect();
        let labels =
            items.iter().map(|item| Tensor::<1, Int>::from_data([i64::from(item.label)], device)).collect();
        Tensors { images: Tensor::cat(images, 0), labels: Tensor::cat(labels, 0) }
    }
}

/// What a careful batcher reads of an item.
pub(super) trait Image: Clone + Send + Sync + std::fmt::Debug {
    fn pixels(&self) -> impl Iterator<Item = f32>;
    fn label(&self) -> u8;
}

impl Image for Item {
    fn pixels(&self) -> impl Iterator<Item = f32> {
        self.image.as_flattened().iter().copied()
    }

    fn label(&self) -> u8 {
        self.label
    }
}

/// One vector for all images and one for all labels: what a careful user writes.
#[derive(Clone, Debug)]
pub(super) struct Careful;

impl<I: Image> Batcher<I, Tensors> for Careful {
    fn batch(&self, items: Vec<I>, device: &Device) -> Tensors {
        let count = items.len();
        let mut pixels = Vec::with_capacity(count * 784);
        for item in &items {
            pixels.extend(item.pixels().map(|pixel| (pixel / 255.0 - 0.1307) / 0.3081));
        }
        let labels: Vec<i32> = items.iter().map(|item| i32::from(item.label())).collect();
        Tensors {
            images: Tensor::from_data(TensorData::new(pixels, [count, 28, 28]), (device, DType::F32)),
            labels: Tensor::from_data(TensorData::new(labels, [count]), (device, DType::I32)),
        }
    }
}

/// burn's own loader over an in-memory data set, on the Flex backend.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    if work.task != Task::LoadFloat {
        return Ok(());
    }
    let images = Dense::open(data.store(work.set, work.codec))?;
    let labels = Dense::open(data.labels())?;
    let everything: Vec<u64> = (0..images.len()).collect();
    let (pixels, _) = images.batch(&everything)?.into_vec::<u8>()?;
    let (labels, _) = labels.batch(&everything)?.into_vec::<u8>()?;
    let items: Vec<Item> = pixels
        .chunks_exact(784)
        .zip(labels)
        .map(|(pixels, label)| {
            let mut image = [[0.0; 28]; 28];
            for (to, &from) in image.as_flattened_mut().iter_mut().zip(pixels) {
                *to = f32::from(from);
            }
            Item { image, label }
        })
        .collect();
    for workers in [0, 2] {
        let dataset = || InMemDataset::new(items.clone());
        system(systems, "InMemDataset, the guide's batcher", Guide, dataset(), workers, work.batch);
        system(systems, "InMemDataset, a one-Vec batcher", Careful, dataset(), workers, work.batch);
    }
    Ok(())
}

/// burn's loader over `dataset` as a system.
pub(super) fn system<I: Clone + Send + Sync + std::fmt::Debug + 'static>(
    systems: &mut Vec<System<'_>>,
    name: &str,
    batcher: impl Batcher<I, Tensors> + 'static,
    dataset: impl Dataset<I> + 'static,
    workers: usize,
    batch: usize,
) {
    let loader = DataLoaderBuilder::new(batcher)
        .batch_size(batch)
        .shuffle(1)
        .num_workers(workers)
        .set_device(Device::flex())
        .build(dataset);
    systems.push(System {
        name: format!("burn {name}, {workers} workers"),
        threads: workers.max(1),
        // An epoch at a time: its iterator borrows the loader.
        burst: Box::new(move |count| {
            let start = std::time::Instant::now();
            let mut done = 0;
            while done < count {
                for tensors in loader.iter().take(count - done) {
                    let tensors = tensors.map_err(|error| error.to_string())?;
                    black_box((&tensors.images, &tensors.labels));
                    done += 1;
                }
            }
            Ok(start.elapsed().as_secs_f64() * 1e6 / count as f64)
        }),
    });
}
