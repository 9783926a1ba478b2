//! Stores back into other formats; each a round trip, byte for byte.

mod files;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "parquet")]
mod parquet;

use std::sync::Arc;

pub use files::export_files;
#[cfg(feature = "npy")]
pub use npy::export_npy;
#[cfg(feature = "parquet")]
pub use parquet::export_parquet;

use super::options::{Meter, Progress};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;
use crate::store::Store;

/// How an export runs.
#[derive(Clone, Default)]
pub struct ExportOptions {
    progress: Option<Arc<dyn Progress>>,
}

impl ExportOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports to `progress`, which may also cancel.
    #[must_use]
    pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    fn meter(&self, records: u64) -> Meter {
        let mut meter = Meter::new(self.progress.clone());
        meter.expect(Some(records), None);
        meter
    }
}

impl std::fmt::Debug for ExportOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportOptions").field("progress", &self.progress.is_some()).finish()
    }
}

/// The schema, which a store needs for its records to mean anything elsewhere.
#[cfg(any(feature = "npy", feature = "parquet"))]
fn schema_of(store: &Store) -> Result<&Schema> {
    store.schema().ok_or_else(|| {
        Error::new(ErrorKind::SchemaMismatch, "the store has no schema, its records are plain bytes")
            .at_path(store.path())
            .with_hint("export it as plain files")
    })
}
