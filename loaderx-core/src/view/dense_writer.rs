use std::path::Path;

use super::Dense;
use super::typed::Typed;
use crate::buffer::{bytes_of, check_truth};
use crate::codec::Codec;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::Schema;
use crate::store::{CreateOptions, Store};

/// Appends records of one shape to a store.
///
/// # Which format version
///
/// Version 3, which the Python package reads too, takes records of 1 byte to 1 MiB. The shape tells beforehand
/// whether a record is within that; if not (also when it has no elements at all, shape `(0,)`), the store is made
/// with version 4.
#[derive(Debug)]
pub struct DenseWriter {
    records: Typed,
}

impl DenseWriter {
    /// Makes a store in `path` for records of `item_shape` elements of `dtype` each; `&[]` for scalars.
    ///
    /// # Errors
    ///
    /// When a store is already there, the directory cannot be written, or a record would be larger than the
    /// format allows.
    pub fn create(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize], codec: Codec) -> Result<Self> {
        Self::create_with(path, dtype, item_shape, CreateOptions::new().codec(codec))
    }

    /// As [`DenseWriter::create`] with a format version, a dictionary and whatever else `options` say. Version 4 is
    /// chosen where a record needs it, whatever they say.
    ///
    /// # Errors
    ///
    /// As [`DenseWriter::create`].
    pub fn create_with(
        path: impl AsRef<Path>,
        dtype: DType,
        item_shape: &[usize],
        mut options: CreateOptions,
    ) -> Result<Self> {
        let schema = Schema::dense(dtype, item_shape)?;
        let bytes = schema.item_bytes() as u64;
        let fits = |version: FormatVersion| {
            (version.min_record_bytes()..=version.max_record_bytes()).contains(&bytes)
        };
        if !fits(FormatVersion::V4) {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a record of {schema} has {bytes} bytes, the most possible is {}",
                    FormatVersion::V4.max_record_bytes()
                ),
            )
            .with_hint("store it in several records, a slice of it each"));
        }
        if !fits(FormatVersion::V3) {
            options = options.format(FormatVersion::V4);
        }
        Ok(Self { records: Typed::create(path.as_ref(), schema, options)? })
    }

    /// Opens the dense store in `path` to append records of `dtype` and `item_shape` to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the store holds another kind, type or shape; otherwise as
    /// [`Store::open_writable`].
    pub fn open(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize]) -> Result<Self> {
        let schema = Schema::dense(dtype, item_shape)?;
        Ok(Self { records: Typed::writable(path.as_ref(), schema)? })
    }

    /// Appends the records whose elements lie one after the other in `elements`: a `Vec`, a slice or an array.
    /// Truth values are given as `u8`. Returns the index of the first.
    ///
    /// # Errors
    ///
    /// When `T` is another type than the store's, the elements are not a whole number of records, or the store
    /// cannot take them. Nothing is written then.
    pub fn append<T: Element>(&self, elements: impl AsRef<[T]>) -> Result<u64> {
        self.records.require_dtype::<T>()?;
        self.append_bytes(bytes_of(elements.as_ref()))
    }

    /// Appends records given as their little-endian bytes; returns the index of the first.
    ///
    /// # Errors
    ///
    /// When the bytes are not a whole number of records, a truth value is neither 0 nor 1, or the store cannot take
    /// them. Nothing is written then.
    pub fn append_bytes(&self, bytes: &[u8]) -> Result<u64> {
        let item = self.records.schema.item_bytes();
        if item == 0 {
            let message =
                format!("records of {} have no bytes, so bytes cannot say how many", self.records.schema);
            let error = Error::invalid(message).at_path(self.records.store.path());
            return Err(error.with_hint("append them with DenseWriter::append_empty"));
        }
        if self.records.schema.dtype() == DType::Bool {
            check_truth(bytes).map_err(|error| {
                let record = error.offset().unwrap_or(0) / item as u64;
                Error::invalid(format!("record {record} of this append: {}", error.message()))
                    .at_path(self.records.store.path())
            })?;
        }
        self.records.store.append_fixed(bytes, item)
    }

    /// Appends `records` records of a shape without elements, such as `(0,)` or `(3, 0)`; returns the index of the
    /// first.
    ///
    /// # Errors
    ///
    /// When records of this store do have elements, or the store cannot take them.
    pub fn append_empty(&self, records: usize) -> Result<u64> {
        if self.records.schema.item_bytes() > 0 {
            let message = format!("records of {} are not empty", self.records.schema);
            return Err(Error::invalid(message).at_path(self.records.store.path()));
        }
        self.records.store.append_slices(std::iter::repeat_n(&[][..], records))
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
    pub fn finish(self) -> Result<Dense> {
        Dense::new(self.records.synced()?)
    }
}
