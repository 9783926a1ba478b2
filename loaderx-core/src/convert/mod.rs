//! Converters: other forms of data into stores, and back.
//!
//! An import reads its input as a stream, in bounded memory whatever the input's size, checks it as it goes and
//! refuses what it cannot represent by name. Its output appears under the final name only when it is complete
//! and durable (see [`Staging`]): an error, a panic, a cancellation through [`Progress`] or a kill never leaves a
//! half-made store that looks like a whole one, and an existing store is never touched.
//!
//! Format version 3, which the Python package reads, is used wherever its limits allow, else version 4;
//! [`ImportedStream::notes`] says so.

mod idx;
mod job;
mod options;
mod sink;
mod staging;

pub use idx::{IdxHeader, import_idx, import_idx_streams};
pub use options::{Done, ImportOptions, Imported, ImportedStream, Progress};
pub use staging::Staging;
