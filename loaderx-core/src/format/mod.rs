//! The byte format: header, record locations, limits. Bytes to validated values and back, no I/O.

mod header;
mod location;

pub use header::{FormatVersion, HEADER_BYTES, Header};
pub use location::{Compression, LOCATION_BYTES, Location};

/// The bytes of a chunk file are numbered by a `u32`.
pub const CHUNK_BYTES: u64 = 1 << 32;
/// Chunks `0..4096` at most.
pub const MAX_CHUNKS: u32 = 4096;
