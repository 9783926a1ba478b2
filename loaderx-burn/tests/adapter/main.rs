//! burn over loaderx stores: tensors, records, steps, a training. One program, so that burn is linked once.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "small numbers, and a test fails by panicking"
)]

mod common;
mod mapping;
mod records;
mod step_loader;
mod training;
