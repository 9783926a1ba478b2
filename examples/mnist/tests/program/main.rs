//! The program as its user runs it: what bad input does, and what is resumed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod common;
mod resume;
