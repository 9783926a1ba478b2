//! Converters: other forms of data in and out.

mod import_idx;
