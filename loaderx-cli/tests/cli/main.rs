//! Runs of the real program.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in the helpers too, an unwrap that fails is a test that fails")]

mod change;
mod common;
mod import;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod large;
mod look;
mod plain;
