use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;
use crate::store::Store;

/// The schema, which a store needs for its records to mean anything elsewhere.
pub(super) fn schema_of(store: &Store) -> Result<&Schema> {
    store.schema().ok_or_else(|| {
        Error::new(ErrorKind::SchemaMismatch, "the store has no schema, its records are plain bytes")
            .at_path(store.path())
            .with_hint("export it as plain files")
    })
}
