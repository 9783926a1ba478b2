//! The loader: order, resume, faults.

mod configuration;
mod determinism;
mod faults;
mod state;
