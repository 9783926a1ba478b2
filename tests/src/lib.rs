//! What the behaviour tests under `tests/tests` share: oracles, generators of data, temporary stores.
#![forbid(unsafe_code)]

pub mod loading;
