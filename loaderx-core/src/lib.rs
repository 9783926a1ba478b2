//! A persistent record store with batch gather, stateless samplers and a prefetching loader for training.
#![deny(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("loaderx uses its little-endian format in place and supports little-endian machines only");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("loaderx maps whole stores into memory and supports 64-bit machines only");

pub mod buffer;
pub mod codec;
pub mod convert;
pub mod dtype;
pub mod error;
pub mod format;
pub mod io;
pub mod sampler;
pub mod schema;
pub mod store;
pub mod view;

pub use buffer::Buffer;
pub use codec::Codec;
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use schema::{Kind, Schema};
pub use store::{CreateOptions, OpenOptions, ReadMode, Store};
pub use view::{Dense, DenseBatch, DenseWriter};
