use std::path::Path;

use super::Ragged;
use super::ragged::require_countable;
use super::typed::Typed;
use crate::buffer::{bytes_of, check_truth};
use crate::codec::Codec;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::format::FormatVersion;
use crate::schema::Schema;
use crate::store::{CreateOptions, Store};

/// Appends records of their own lengths to a store.
///
/// # Which format version
///
/// [`RaggedWriter::create`] makes a version 3 store, which the Python package reads too: records of 1 byte to
/// 1 MiB, at most 2^24 of them. How long the longest record will be, or whether one will have no rows at all, cannot
/// be known beforehand, so records outside these limits are refused, before anything is written, and the error says
/// what to do: create the store with version 4, which takes 0 bytes to 2 GiB.
///
/// ```
/// use loaderx_core::format::FormatVersion;
/// use loaderx_core::{CreateOptions, DType, RaggedWriter};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("texts");
/// let options = CreateOptions::new().format(FormatVersion::V4);
/// let writer = RaggedWriter::create_with(&path, DType::U16, &[], options)?;
/// writer.append(&[11_u16, 12, 13, 21], &[3, 0, 1])?;
/// let texts = writer.finish()?;
/// assert_eq!(texts.batch(&[1, 0])?.offsets(), [0, 0, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RaggedWriter {
    records: Typed,
}

impl RaggedWriter {
    /// Makes a version 3 store in `path` for records of `(rows, *item_shape)` elements of `dtype`; `&[]` for
    /// sequences of scalars.
    ///
    /// # Errors
    ///
    /// When a store is already there, the directory cannot be written, or a row has no elements.
    pub fn create(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize], codec: Codec) -> Result<Self> {
        Self::create_with(path, dtype, item_shape, CreateOptions::new().codec(codec))
    }

    /// As [`RaggedWriter::create`] with a format version, a dictionary and whatever else `options` say.
    ///
    /// # Errors
    ///
    /// As [`RaggedWriter::create`].
    pub fn create_with(
        path: impl AsRef<Path>,
        dtype: DType,
        item_shape: &[usize],
        options: CreateOptions,
    ) -> Result<Self> {
        let schema = Schema::ragged(dtype, item_shape)?;
        require_countable(&schema)?;
        Ok(Self { records: Typed::create(path.as_ref(), schema, options)? })
    }

    /// Opens the ragged store in `path` to append records of `dtype` and `item_shape` to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when the store holds another kind, type or
    /// shape; otherwise as [`Store::open_writable`].
    pub fn open(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize]) -> Result<Self> {
        let schema = Schema::ragged(dtype, item_shape)?;
        require_countable(&schema)?;
        Ok(Self { records: Typed::writable(path.as_ref(), schema)? })
    }

    /// Appends records whose elements lie one after the other in `values`; `lengths` says how many rows each has.
    /// Truth values are given as `u8`. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// When `T` is another type than the store's, the lengths do not add up to the values, a record is outside the
    /// limits of the format version, or the store cannot take them. Nothing is written then.
    pub fn append<T: Element>(&self, values: impl AsRef<[T]>, lengths: &[usize]) -> Result<u64> {
        self.records.require_dtype::<T>()?;
        self.append_bytes(bytes_of(values.as_ref()), lengths)
    }

    /// Appends each slice as one record. Truth values are given as `u8`. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// As [`RaggedWriter::append`].
    pub fn append_records<'a, T: Element>(&self, records: impl IntoIterator<Item = &'a [T]>) -> Result<u64> {
        self.records.require_dtype::<T>()?;
        let records: Vec<&[u8]> = records.into_iter().map(bytes_of).collect();
        self.append_slices(&records)
    }

    /// Appends records given as the little-endian bytes of their elements; `lengths` says how many rows each has.
    /// Returns the index of the first.
    ///
    /// # Errors
    ///
    /// As [`RaggedWriter::append`].
    pub fn append_bytes(&self, bytes: &[u8], lengths: &[usize]) -> Result<u64> {
        let item = self.records.schema.item_bytes();
        let mut rest = bytes;
        let mut records = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let split = length.checked_mul(item).and_then(|length| rest.split_at_checked(length));
            let Some((record, after)) = split else {
                return Err(self.wrong_lengths(bytes, lengths));
            };
            records.push(record);
            rest = after;
        }
        if !rest.is_empty() {
            return Err(self.wrong_lengths(bytes, lengths));
        }
        self.append_slices(&records)
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.records.store
    }

    /// Makes everything durable and views the store.
    ///
    /// # Errors
    ///
    /// When the operating system reports a failure.
    pub fn finish(self) -> Result<Ragged> {
        Ragged::new(self.records.synced()?)
    }

    fn append_slices(&self, records: &[&[u8]]) -> Result<u64> {
        let (version, item) = (self.records.store.format(), self.records.schema.item_bytes());
        let limits = version.min_record_bytes()..=version.max_record_bytes();
        for (i, record) in records.iter().enumerate() {
            let refuse = |error: Error| error.at_path(self.records.store.path());
            if !record.len().is_multiple_of(item) {
                return Err(refuse(Error::invalid(format!(
                    "record {i} of this append has {} bytes, no whole number of rows of {item}",
                    record.len()
                ))));
            }
            if !limits.contains(&(record.len() as u64)) {
                let error = Error::new(
                    crate::ErrorKind::LimitExceeded,
                    format!(
                        "record {i} of this append has {} rows ({} bytes); format version {} takes {} to {} bytes",
                        record.len() / item,
                        record.len(),
                        version.number(),
                        limits.start(),
                        limits.end()
                    ),
                );
                return Err(refuse(match version {
                    FormatVersion::V3 => error.with_hint(
                        "create the store with RaggedWriter::create_with and CreateOptions::format(FormatVersion::V4) \
                         to keep such records, or leave them out",
                    ),
                    FormatVersion::V4 => error,
                }));
            }
            if self.records.schema.dtype() == DType::Bool {
                check_truth(record).map_err(|error| {
                    refuse(Error::invalid(format!("record {i} of this append: {}", error.message())))
                })?;
            }
        }
        self.records.store.append_slices(records.iter().copied())
    }

    fn wrong_lengths(&self, bytes: &[u8], lengths: &[usize]) -> Error {
        let item = self.records.schema.item_bytes();
        let rows = lengths.iter().fold(0_usize, |sum, &length| sum.saturating_add(length));
        Error::invalid(format!(
            "{} lengths that add up to {rows} rows of {item} bytes do not divide {} bytes",
            lengths.len(),
            bytes.len()
        ))
        .at_path(self.records.store.path())
    }
}
