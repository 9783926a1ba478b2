//! What is fuzzed: every parser of stored bytes, whole directories, and sequences of operations with faults.
//!
//! Each function takes arbitrary bytes and panics if the store does what it must never do. libFuzzer drives them
//! through `fuzz_targets/`, and the program `smoke` with a simple mutator where libFuzzer is not at hand.
#![forbid(unsafe_code)]

mod store;

use loaderx_core::format::check::{CheckHeader, SLOT_BYTES};
use loaderx_core::format::{FormatVersion, HEADER_BYTES, Header, LOCATION_BYTES, Location};
use loaderx_core::{DType, Schema};

pub use store::{directory, journal, operations, pack};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("header", header),
    ("location", location),
    ("schema", schema),
    ("checks", checks),
    ("journal", journal),
    ("directory", directory),
    ("operations", operations),
];

/// The header of `meta.zr`: what is accepted is written back as the same bytes.
pub fn header(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<HEADER_BYTES>() else { return };
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), *bytes);
        assert!(u64::from(header.length) <= header.version.max_records());
        assert!(u32::from(header.tail_chunk) < header.version.max_chunks());
    }
}

/// An entry of the record table: what is accepted is within the limits, and survives being written.
pub fn location(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<LOCATION_BYTES>() else { return };
    for version in [FormatVersion::V3, FormatVersion::V4] {
        if let Ok(location) = Location::decode(bytes, version) {
            let limits = version.min_record_bytes()..=version.max_record_bytes();
            assert!(limits.contains(&u64::from(location.decoded_length)));
            assert!(location.stored_length <= location.decoded_length);
            assert_eq!(Location::decode(&location.encode(), version).unwrap(), location);
        }
    }
}

/// `schema.msgpack`, and the type strings in it.
pub fn schema(data: &[u8]) {
    if let Ok((schema, codec)) = Schema::decode(data) {
        let bytes = schema.encode(&codec).unwrap();
        assert_eq!(Schema::decode(&bytes).unwrap(), (schema, codec));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(dtype) = DType::from_numpy(text)
    {
        assert_eq!(DType::from_numpy(dtype.numpy()).unwrap(), dtype);
    }
}

/// The two slots at the start of `check.zr`.
pub fn checks(data: &[u8]) {
    let Some(slots) = data.first_chunk::<{ 2 * SLOT_BYTES }>() else { return };
    let mut slots = *slots;
    for fixed in [false, true] {
        if fixed {
            store::seal_slots(&mut slots);
        }
        if let Ok(header) = CheckHeader::newest(&slots) {
            assert_eq!(CheckHeader::decode(&header.encode()).unwrap(), header);
        }
    }
}
