//! A persistent record store with batch gather, stateless samplers and a prefetching loader for training.
//!
//! Records go into a store on disk once; training reads them back in batches, in an order that is a pure function
//! of (seed, step). So a run resumes exactly and at once after any stop, with any number of workers and ranks.
//!
//! ```
//! use loaderx_core::sampler::Cyclic;
//! use loaderx_core::{Codec, DType, Dense, DenseWriter, Loader};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("images");
//! // Once: ten images of 2 x 3 bytes.
//! let writer = DenseWriter::create(&path, DType::U8, &[2, 3], Codec::zstd())?;
//! writer.append((0..60).collect::<Vec<u8>>())?;
//! writer.finish()?;
//!
//! // Training: batches of 4 in a fresh order each cycle, prepared ahead by two threads.
//! let images = Dense::open(&path)?;
//! let sampler = Cyclic::new(images.len(), 4, 42)?;
//! let mut loader = Loader::builder().stream("image", images).sampler(sampler).workers(2).build()?;
//! for batch in (&mut loader).take(100) {
//!     let (pixels, shape) = batch?.take_dense("image")?.into_vec::<u8>()?;
//!     assert_eq!((pixels.len(), shape), (24, vec![4, 2, 3]));
//! }
//! let checkpoint = loader.state().to_bytes()?; // `resume` goes on at step 100
//! # assert_eq!(loaderx_core::LoaderState::from_bytes(&checkpoint)?.step(), 100);
//! # Ok::<(), loaderx_core::Error>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | write and read records of one shape | [`DenseWriter`], [`Dense`] |
//! | choose which records a step has | [`sampler`] |
//! | train: prepare ahead, resume, evaluate | [`loader`] |
//! | handle records as plain bytes | [`Store`] |
//! | import other formats, open streams together | [`convert`], [`Dataset`] |
//! | react to failures | [`Error`], [`ErrorKind`] |
#![deny(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("loaderx uses its little-endian format in place and supports little-endian machines only");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("loaderx maps whole stores into memory and supports 64-bit machines only");

/// Compiles and runs the code of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub mod buffer;
pub mod codec;
pub mod convert;
pub mod dtype;
pub mod error;
pub mod format;
pub mod io;
pub mod loader;
pub mod sampler;
pub mod schema;
pub mod store;
pub mod view;

pub use buffer::Buffer;
pub use codec::{Codec, Literals};
pub use convert::Dataset;
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use loader::{Batch, Loader, LoaderState, OnDamage};
pub use schema::{Kind, Schema};
pub use store::{CreateOptions, OpenOptions, ReadMode, Store};
pub use view::{Column, Dense, DenseBatch, DenseWriter, Ragged, RaggedBatch, RaggedWriter, Request, Source};
