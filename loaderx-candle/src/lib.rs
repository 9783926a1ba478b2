//! candle tensors from loaderx stores.
//!
//! [`TensorLoader`] turns a loader of `loaderx-core` into an iterator for the loops that candle users write. On the CPU
//! the memory that the gather wrote becomes the tensor's own, without a copy.
//!
//! ```
//! use candle_core::{D, Device};
//! use loaderx_candle::{BatchIterator, Columns, TensorLoader};
//! use loaderx_core::sampler::Cyclic;
//! use loaderx_core::{Codec, DType, DenseWriter, Loader};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = |name: &str| dir.path().join(name);
//! let images = DenseWriter::create(path("images"), DType::F32, &[4], Codec::Raw)?;
//! images.append((0..40_u8).map(f32::from).collect::<Vec<_>>())?; // 10 records
//! let labels = DenseWriter::create(path("labels"), DType::I32, &[], Codec::Raw)?;
//! labels.append((0..10).collect::<Vec<i32>>())?;
//!
//! let builder = Loader::builder()
//!     .stream("image", images.finish()?)
//!     .stream("label", labels.finish()?)
//!     .sampler(Cyclic::new(10, 4, 42)?)
//!     .workers(2);
//! let mut loader = TensorLoader::new(builder, Columns::new().ids("label"))?.on(&Device::Cpu);
//!
//! for batch in loader.by_ref().pairs("image", "label").take(3) {
//!     let (xs, ys) = batch?;
//!     assert_eq!((xs.dims(), ys.dims()), ([4, 4].as_slice(), [4].as_slice()));
//!     assert_eq!(ys.dtype(), candle_core::DType::U32);
//!     let logits = xs.argmax(D::Minus1)?; // a model, a loss, a step
//! #   let _ = logits;
//! }
//! let saved = loader.state(); // serialisable; `loader.resume(&saved)` goes on with the fourth batch
//! assert_eq!(saved.step(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Coming from `candle_datasets::Batcher`
//!
//! `Batcher::new_r2(items).batch_size(n)` yields `candle_core::Result<(Tensor, Tensor)>`, and so do
//! [`pairs`](BatchIterator::pairs): the loop stays as it is. What changes is the line that makes the iterator, and that
//! it shuffles, does not end, and goes on exactly where it was saved. [`tensors`](BatchIterator::tensors) stands in for
//! `Batcher::new_r1`, and [`TensorLoader::pass`] delivers every record once, the short last batch included.
//!
//! # Element types
//!
//! See the table of [`tensor_dtype`]. Class labels and token ids leave as `U32` with [`Columns::ids`].
//!
//! # Ragged streams
//!
//! | the loader's stream | entry | for |
//! |---|---|---|
//! | [`Ragged`](loaderx_core::Ragged) | [`Packed`]: values, lengths, `cu_seqlens`, positions | inference with variable-length attention |
//! | [`Ragged::padded`](loaderx_core::Ragged::padded) | [`Padded`]: values, mask, lengths | training |
//! | [`Ragged::packed`](loaderx_core::Ragged::packed) | [`PackedRows`]: values, segments, positions | language models |
//!
//! # Devices
//!
//! Workers make tensors on the CPU; `next` copies them to the device of [`TensorLoader::on`] on the thread that calls
//! it. That is on purpose: candle's CUDA device uses one stream for each thread, and a kernel of the training thread
//! would not wait for a copy that a worker's stream still makes. The features `cuda` and `metal` switch on candle's own.
//!
//! # Memory
//!
//! Each batch is fresh memory that the tensor owns. glibc gives the top of its heap back at every free, so that batches
//! of around a megabyte fault their pages in again and again; a program that feels it sets another global allocator.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod batch;
mod columns;
mod dtype;
mod error;
mod loader;
mod pairs;
mod ragged;
mod tensor;

pub use batch::{Entry, TensorBatch};
pub use columns::Columns;
pub use dtype::tensor_dtype;
pub use loader::{TensorLoader, TensorPass};
pub use pairs::{BatchIterator, Pairs, Tensors};
pub use ragged::{Packed, PackedRows, Padded};
