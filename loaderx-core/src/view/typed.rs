use std::path::Path;
use std::sync::Arc;

use crate::buffer::check_truth;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Kind, Schema};
use crate::store::{CreateOptions, Store};

/// A store and the schema of its records: what the views and their writers have in common.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) store: Arc<Store>,
    pub(super) schema: Schema,
}

impl Typed {
    /// An open store whose records must be of `kind`.
    pub(super) fn of_kind(store: Arc<Store>, kind: Kind) -> Result<Self> {
        let mismatch = |message: String, hint: &str| {
            Err(Error::new(ErrorKind::SchemaMismatch, message).at_path(store.path()).with_hint(hint))
        };
        match store.schema().cloned() {
            Some(schema) if schema.kind() == kind => Ok(Self { store, schema }),
            Some(schema) => {
                let hint = match schema.kind() {
                    Kind::Dense => "open it as Dense",
                    Kind::Ragged => "open it as Ragged",
                };
                mismatch(format!("the store holds {schema}, not {kind} records"), hint)
            }
            None => mismatch(
                "the store has no schema, its records are plain bytes".to_owned(),
                "read it with Store::gather_packed, or give it a schema with `loaderx recode --dtype ... --shape ...`",
            ),
        }
    }

    /// A new store in `path` for records of `schema`.
    pub(super) fn create(path: &Path, schema: Schema, options: CreateOptions) -> Result<Self> {
        let store = Arc::new(options.schema(schema.clone()).create(path)?);
        Ok(Self { store, schema })
    }

    /// The store in `path`, open to append records of `schema`.
    pub(super) fn writable(path: &Path, schema: Schema) -> Result<Self> {
        let store = Arc::new(Store::open_writable(path)?);
        match store.schema() {
            Some(stored) => stored.require(&schema).map_err(|error| error.at_path(path))?,
            None => {
                let message = format!("the store holds plain bytes, not {schema}");
                return Err(Error::new(ErrorKind::SchemaMismatch, message).at_path(path));
            }
        }
        Ok(Self { store, schema })
    }

    /// Refuses elements of another type than the schema's; truth values come as `u8`.
    pub(super) fn require_dtype<T: Element>(&self) -> Result<()> {
        let dtype = self.schema.dtype();
        if T::DTYPE == dtype || (dtype == DType::Bool && T::DTYPE == DType::U8) {
            return Ok(());
        }
        let message = format!("elements of {} do not go into a store of {}", T::DTYPE, self.schema);
        Err(Error::new(ErrorKind::SchemaMismatch, message).at_path(self.store.path()))
    }

    /// Refuses gathered truth values that are neither 0 nor 1; `record_at` is the position in `indices` of the record
    /// that a byte belongs to. All other elements may be anything.
    pub(super) fn check_truth(
        &self,
        indices: &[u64],
        bytes: &[u8],
        record_at: impl FnOnce(usize) -> usize,
    ) -> Result<()> {
        if self.schema.dtype() != DType::Bool {
            return Ok(());
        }
        check_truth(bytes).map_err(|error| {
            let at = error.offset().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
            let error = error.at_path(self.store.path());
            match indices.get(record_at(at)) {
                Some(&index) => error.for_record(index),
                None => error,
            }
        })
    }

    /// The store, once everything that was appended is durable.
    pub(super) fn synced(self) -> Result<Arc<Store>> {
        self.store.sync()?;
        Ok(self.store)
    }
}
