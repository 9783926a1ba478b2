//! Converters: other forms of data in and out.
#![forbid(unsafe_code)]

mod export_round_trip;
mod import_arrays;
mod import_idx;
mod import_media;
mod import_snapshots;
mod import_tables;
mod plain_bytes;
