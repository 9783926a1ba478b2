//! Measuring like a referee: variants of one piece of work run in turn, round by round, so that a slow phase of
//! the machine hits all of them, and every figure stands beside a reference of the same run.

mod data;
mod rounds;

pub use data::{Lcg, checksum, random_indices, uninit_bytes};
pub use rounds::{Measured, Work};

/// How long to measure: `--quick` on the command line shortens every benchmark to a check that it runs.
#[must_use]
pub fn rounds_wanted() -> usize {
    // `cargo bench` adds `--bench`; `cargo test --benches` runs the same binaries without it.
    let full = std::env::args().any(|argument| argument == "--bench");
    let quick = std::env::args().any(|argument| argument == "--quick");
    if full && !quick { 201 } else { 3 }
}
