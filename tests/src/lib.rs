//! What the behaviour tests under `tests/tests` share: oracles, generators of data, temporary stores.
#![forbid(unsafe_code)]

/// Compiles and runs the README's code blocks.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles and runs the code blocks of the document on sampling.
#[cfg(doctest)]
#[doc = include_str!("../../docs/sampling.md")]
pub struct Sampling;

pub mod churn;
pub mod crash;
pub mod directory;
pub mod golden;
pub mod import;
pub mod loading;
pub mod model;
pub mod mount;
pub mod npy;
pub mod process;
pub mod python;
pub mod ragged;
pub mod random;
pub mod sampler_oracle;
