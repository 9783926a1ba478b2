//! What the records of a store are.

use crate::error::Result;
use crate::schema::Schema;
use crate::store::Store;

/// What the records of `store` are: what it says itself, else what the caller says; `None` for plain bytes. Refuses a
/// caller who says something else than the store.
pub(super) fn described(store: &Store, wanted: Option<&Schema>) -> Result<Option<Schema>> {
    match (store.schema(), wanted) {
        (Some(own), Some(wanted)) => {
            own.require(wanted).map_err(|error| error.at_path(store.path()))?;
            Ok(Some(own.clone()))
        }
        (Some(own), None) => Ok(Some(own.clone())),
        (None, wanted) => Ok(wanted.cloned()),
    }
}
