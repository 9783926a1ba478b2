//! The loader: order, resume, faults.

mod configuration;
mod damage;
mod determinism;
mod faults;
mod settings;
mod state;
