//! Views: batches of every type and shape, padded, packed, converted, mapped.

mod convert_elements;
mod dense_round_trip;
mod every_type_and_shape;
mod map_records;
mod pack_records;
mod pad_records;
mod ragged_batches;
