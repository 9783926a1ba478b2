use std::path::Path;
use std::sync::Arc;

use super::Dense;
use crate::buffer::Buffer;
use crate::codec::Codec;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::Schema;
use crate::store::{CreateOptions, Store};

/// Appends records of one shape to a store.
#[derive(Debug)]
pub struct DenseWriter {
    store: Store,
    schema: Schema,
}

impl DenseWriter {
    /// Makes a store in `path` for records of `item_shape` elements of `dtype` each; `&[]` for scalars.
    ///
    /// # Errors
    ///
    /// When a store is already there, the directory cannot be written, or a record would be larger than the
    /// format allows.
    pub fn create(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize], codec: Codec) -> Result<Self> {
        let schema = Schema::dense(dtype, item_shape)?;
        let bytes = schema.item_bytes() as u64;
        let version = if bytes > FormatVersion::V3.max_record_bytes() || bytes == 0 {
            FormatVersion::V4
        } else {
            FormatVersion::V3
        };
        if bytes > version.max_record_bytes() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a record of {schema} has {bytes} bytes, the most possible is {}",
                    version.max_record_bytes()
                ),
            ));
        }
        let store = CreateOptions::new().codec(codec).schema(schema.clone()).format(version).create(path)?;
        Ok(Self { store, schema })
    }

    /// Opens the dense store in `path` to append records of `dtype` and `item_shape` to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the store holds another kind, type or shape; otherwise as
    /// [`Store::open_writable`].
    pub fn open(path: impl AsRef<Path>, dtype: DType, item_shape: &[usize]) -> Result<Self> {
        let schema = Schema::dense(dtype, item_shape)?;
        let store = Store::open_writable(path)?;
        match store.schema() {
            Some(stored) => stored.require(&schema).map_err(|error| error.at_path(store.path()))?,
            None => {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!("the store holds plain bytes, not {schema}"),
                )
                .at_path(store.path()));
            }
        }
        Ok(Self { store, schema })
    }

    /// Appends the records whose elements lie one after the other in `elements`; returns the index of the first.
    ///
    /// # Errors
    ///
    /// When `T` is another type than the store's, the elements are not a whole number of records, or the store
    /// cannot take them.
    pub fn append<T: Element>(&self, elements: Vec<T>) -> Result<u64> {
        let buffer = Buffer::from(elements);
        if buffer.dtype() != self.schema.dtype() {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!("elements of {} do not go into a store of {}", buffer.dtype(), self.schema),
            )
            .at_path(self.store.path()));
        }
        self.append_bytes(buffer.as_bytes())
    }

    /// Appends records given as their little-endian bytes; returns the index of the first.
    ///
    /// # Errors
    ///
    /// When the bytes are not a whole number of records, or the store cannot take them.
    pub fn append_bytes(&self, bytes: &[u8]) -> Result<u64> {
        self.store.append_fixed(bytes, self.schema.item_bytes())
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes everything durable and views the store.
    ///
    /// # Errors
    ///
    /// When the operating system reports a failure.
    pub fn finish(self) -> Result<Dense> {
        self.store.sync()?;
        Dense::new(Arc::new(self.store))
    }
}
