#![forbid(unsafe_code)]
//! loaderx for [burn](https://burn.dev): batches gathered straight into the memory that tensors own.
//!
//! | you have | take |
//! |---|---|
//! | a training with burn's `SupervisedTraining`, or a loop over a `DataLoader` | [`StepLoader`] |
//! | code around burn's `DataLoaderBuilder` that should stay as it is | [`Records`] and its batcher |
//! | a loop of your own over [`loaderx_core::Loader`] | [`TakeTensor`], [`IntoTensor`] |
//! | records of different lengths | [`IntoPadded`], [`IntoPacked`] |
//!
//! # From `InMemDataset` to loaderx
//!
//! Two lines change: the dataset, and the batcher that makes tensors of a whole batch in place of one item at a time.
//!
//! ```
//! use burn::data::dataloader::DataLoaderBuilder;
//! use burn::tensor::Device;
//! use loaderx_burn::{Records, TakeTensor};
//! # use loaderx_core::{Codec, DType, Dense, DenseWriter};
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("x");
//! # let writer = DenseWriter::create(&path, DType::F32, &[3], Codec::Raw)?;
//! # writer.append(vec![0.5_f32; 30])?;
//! # writer.finish()?;
//!
//! // before: let dataset = InMemDataset::new(items);
//! let dataset = Records::builder().stream("x", Dense::open(&path)?).build()?;
//! // before: let batcher = MyBatcher::default();
//! let batcher = dataset.batcher(|mut batch, device| batch.take_float::<2>("x", device));
//!
//! let loader =
//!     DataLoaderBuilder::new(batcher).batch_size(5).shuffle(1).set_device(Device::flex()).build(dataset);
//! assert_eq!(loader.iter().count(), 2);
//! # Ok::<(), loaderx_core::Error>(())
//! ```
//!
//! What burn's own loader cannot do comes with [`StepLoader`]: exact resume, batches in order and independent of the
//! number of workers, a bound on the memory ahead, errors in place of silently short epochs, shuffles over the whole
//! data set for any number of workers and devices.
//!
//! # Element types and copies
//!
//! The gathered memory becomes the tensor. Copies after the gather, on Flex, burn's CPU backend:
//!
//! | stored | burn's tensor | element type | copies, vector | copies, pool |
//! |---|---|---|---|---|
//! | f16, bf16, f32, f64 | `Float` | the same | 0 | 0 |
//! | u8, u16, u32, u64, i8, i16, i32, i64 | `Int` | the same | 0 | 0 |
//! | bool | `Bool` | `Bool(Native)` | 0 | 0 |
//!
//! A test compares the pointers for every row. Memory of a [`Pool`](loaderx_core::buffer::Pool) is copied by the
//! first operation that would change the tensor in place. GPU backends copy once, to the device.
//!
//! # Support
//!
//! | burn | loaderx-burn |
//! |---|---|
//! | 0.22 | this version |
//! | 0.21 and older | none: their traits have a backend parameter that 0.22 removed |
//!
//! Not supported: quantised tensors (they are no element type of a store), and burn's `Batcher` cannot report errors,
//! see [`Records`].

/// Compiles and runs the code of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod data;
mod ragged;
mod records;
mod steps;
mod tensors;

pub use data::{burn_type, tensor_data};
pub use ragged::{IntoPacked, IntoPadded, Packed, Padded};
pub use records::{GatherBatcher, RecordRef, Records, RecordsBuilder};
pub use steps::StepLoader;
pub use tensors::{IntoTensor, TakeTensor};
