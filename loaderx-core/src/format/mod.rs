//! The byte format: header, record locations, checks, journal, limits. Bytes to validated values and back, no I/O.
//!
//! `docs/format.md` in the repository is the normative description; this module is its only implementation.

pub mod check;
mod header;
pub mod journal;
mod location;

pub use header::{FormatVersion, HEADER_BYTES, Header, table_offset};
pub use location::{Compression, LOCATION_BYTES, Location};

/// The bytes of a chunk file are numbered by a `u32`; no record ends at this offset or past it.
pub const CHUNK_BYTES: u64 = 1 << 32;
