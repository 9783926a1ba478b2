//! A persistent record store with batch gather, stateless samplers and a prefetching loader for training.
#![deny(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("loaderx uses its little-endian format in place and supports little-endian machines only");

pub mod dtype;
pub mod error;
pub mod sampler;

pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
