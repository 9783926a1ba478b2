//! Converters: other forms of data into stores, and back.
//!
//! An import reads its input as a stream, in bounded memory whatever the input's size, checks it as it goes and
//! refuses what it cannot represent by name. Its output appears under the final name only when it is complete
//! and durable (see [`Staging`]): an error, a panic, a cancellation through [`Progress`] or a kill never leaves a
//! half-made store that looks like a whole one, and an existing store is never touched.
//!
//! Format version 3, which the Python package reads, is used wherever its limits allow, else version 4;
//! [`ImportedStream::notes`] says so.
//!
//! What has one array becomes one store; what has several columns becomes a [`Dataset`], a directory with a store
//! for each stream. [`Format::detect`] and [`import`] choose by the input itself. Each foreign format is behind
//! the feature of its name; IDX and plain files are always there.

mod array;
#[cfg(feature = "arrow")]
mod arrow;
mod blocks;
mod choose;
#[cfg(feature = "arrow")]
mod columnar;
mod dataset;
#[cfg(feature = "csv")]
mod delimited;
mod described;
mod export;
mod files;
mod format;
#[cfg(feature = "npy")]
mod fortran;
mod idx;
#[cfg(feature = "image")]
mod images;
#[cfg(any(feature = "csv", feature = "json"))]
mod infer;
mod input;
mod job;
#[cfg(feature = "json")]
mod jsonl;
#[cfg(feature = "npy")]
mod npy;
#[cfg(any(feature = "arrow", feature = "csv", feature = "json"))]
mod number;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(any(feature = "arrow", feature = "tar"))]
mod parts;
mod rewrite;
#[cfg(feature = "safetensors")]
mod safetensors;
mod sink;
mod staging;
mod streams;
#[cfg(feature = "tar")]
mod webdataset;

#[cfg(feature = "arrow")]
pub use arrow::import_arrow;
pub use choose::{ChosenCodec, CodecTrial, choose_codec};
pub use dataset::Dataset;
#[cfg(feature = "csv")]
pub use delimited::import_csv;
#[cfg(feature = "npy")]
pub use export::export_npy;
#[cfg(feature = "parquet")]
pub use export::export_parquet;
pub use export::{ExportOptions, export_files};
pub use files::import_files;
pub use format::{Format, import};
pub use idx::{IdxHeader, import_idx};
#[cfg(feature = "image")]
pub use images::import_images;
#[cfg(feature = "json")]
pub use jsonl::import_jsonl;
#[cfg(feature = "npy")]
pub use npy::{import_npy, import_npz};
pub use options::{Done, ImportOptions, Imported, ImportedStream, Progress};
#[cfg(feature = "parquet")]
pub use parquet::import_parquet;
pub use rewrite::{Part, rewrite, rewrite_streams};
#[cfg(feature = "safetensors")]
pub use safetensors::import_safetensors;
pub use staging::Staging;
pub use streams::import_streams;
#[cfg(feature = "tar")]
pub use webdataset::import_webdataset;
