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
#[cfg(any(feature = "npy", feature = "parquet"))]
use crate::schema::Schema;

/// How an export runs.
#[derive(Clone, Default)]
pub struct ExportOptions {
    #[cfg(any(feature = "npy", feature = "parquet"))]
    schema: Option<Schema>,
    progress: Option<Arc<dyn Progress>>,
}

impl ExportOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what the records of a store without a schema are, such as one that the Python package wrote from plain
    /// bytes. Every record is checked against it.
    #[cfg(any(feature = "npy", feature = "parquet"))]
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
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
        f.debug_struct("ExportOptions").field("progress", &self.progress.is_some()).finish_non_exhaustive()
    }
}
