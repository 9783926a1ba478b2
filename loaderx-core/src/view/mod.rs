//! Views: what a store's records look like as batches.
//!
//! | view | batch | for |
//! |---|---|---|
//! | [`Dense`] | [`DenseBatch`], `[records, *item_shape]` | images, features, labels |
//! | [`Ragged`] | [`RaggedBatch`], values and offsets | texts, time series, encoded images |
//!
//! What a view gives can be changed on the way, in the same pass that reads the records:
//!
//! | call | batch |
//! |---|---|
//! | [`Ragged::padded`] | [`PaddedBatch`]: every record padded or cut to one length, with lengths and mask |
//! | [`Ragged::packed`] | [`PackedBatch`]: several records to a row of one length, with position and segment ids |
//! | [`Dense::convert`], [`Dense::to_f32`], [`Ragged::convert`] | the same with other elements, scaled and normalised if wanted |
//! | [`Dense::map`], [`Ragged::map`] | dense records made by a function: decoded, cropped, augmented |
//!
//! A view is a [`Source`]: the loader and the adapters gather through that trait, whatever is behind it, and get a
//! [`Column`].

mod column;
mod convert;
mod dense;
mod dense_batch;
mod dense_writer;
mod fill;
mod map;
mod number;
mod pack;
mod packed;
mod packed_batch;
mod pad;
mod padded;
mod padded_batch;
mod ragged;
mod ragged_batch;
mod ragged_writer;
mod source;
mod typed;

pub use column::Column;
pub use convert::{Channels, Converted};
pub use dense::Dense;
pub use dense_batch::DenseBatch;
pub use dense_writer::DenseWriter;
pub use map::{MapResult, Mapped, OutRow, RecordRng, Stored};
pub use number::Number;
pub use pack::{Fit, Pack};
pub use packed::Packed;
pub use packed_batch::{PackedBatch, Piece};
pub use pad::{Keep, Pad};
pub use padded::Padded;
pub use padded_batch::{PaddedBatch, Side};
pub use ragged::Ragged;
pub use ragged_batch::RaggedBatch;
pub use ragged_writer::RaggedWriter;
pub use source::{Request, Source};
