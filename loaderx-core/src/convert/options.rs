use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::Codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::FormatVersion;
use crate::schema::Schema;

/// How far a conversion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// Records written so far.
    pub records: u64,
    /// Records that there will be, where the input says so at its start.
    pub total_records: Option<u64>,
    /// Bytes of input handled so far.
    pub bytes: u64,
    /// Bytes of input that there are, where that is known at the start.
    pub total_bytes: Option<u64>,
}

/// Hears how far a conversion is, and may end it.
///
/// Every closure of the right shape is one. It is called a few times for each MiB, on the thread that converts.
pub trait Progress: Send + Sync {
    /// Called after each block of records; `Break` cancels the conversion, which then leaves nothing behind and
    /// returns an error of kind [`ErrorKind::Cancelled`].
    fn report(&self, done: &Done) -> ControlFlow<()>;
}

impl<F: Fn(&Done) -> ControlFlow<()> + Send + Sync> Progress for F {
    fn report(&self, done: &Done) -> ControlFlow<()> {
        self(done)
    }
}

/// How an import stores what it reads.
///
/// The default stores records raw, in format version 3 where its limits allow and in version 4 where not.
#[derive(Clone, Default)]
pub struct ImportOptions {
    pub(super) codec: Option<Codec>,
    pub(super) format: Option<FormatVersion>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

impl ImportOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the records with this codec; raw by default.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
        self
    }

    /// Insists on a format version instead of the automatic choice; what does not fit it is then refused.
    #[must_use]
    pub fn format(mut self, version: FormatVersion) -> Self {
        self.format = Some(version);
        self
    }

    /// Reports to `progress`, which may also cancel.
    #[must_use]
    pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }
}

impl fmt::Debug for ImportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions")
            .field("codec", &self.codec)
            .field("format", &self.format)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What an import made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The store, or the directory of stores, under its final name.
    pub path: PathBuf,
    /// Records of each stream.
    pub records: u64,
    /// The streams in the order of the input; one with an empty name where `path` itself is the store.
    pub streams: Vec<ImportedStream>,
}

/// One store that an import made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportedStream {
    /// Its folder within [`Imported::path`]; empty where that is the store itself.
    pub name: String,
    /// What its records mean.
    pub schema: Schema,
    /// How they are stored.
    pub codec: Codec,
    /// The format version that was chosen.
    pub format: FormatVersion,
    /// Records.
    pub records: u64,
    /// Their bytes before compression.
    pub bytes: u64,
    /// Choices that were made by themselves, each a sentence: why format version 4, why this codec.
    pub notes: Vec<String>,
}

/// Counts and reports; the one place where a conversion is cancelled.
#[derive(Default)]
pub(super) struct Meter {
    done: Done,
    progress: Option<Arc<dyn Progress>>,
}

impl Meter {
    pub(super) fn new(progress: Option<Arc<dyn Progress>>) -> Self {
        Self { done: Done::default(), progress }
    }

    pub(super) fn expect(&mut self, records: Option<u64>, bytes: Option<u64>) {
        self.done.total_records = records;
        self.done.total_bytes = bytes;
    }

    pub(super) fn advance(&mut self, records: u64, bytes: u64) -> Result<()> {
        self.done.records += records;
        self.done.bytes += bytes;
        match &self.progress {
            Some(progress) if progress.report(&self.done).is_break() => Err(Error::new(
                ErrorKind::Cancelled,
                format!("cancelled after {} records; nothing was kept", self.done.records),
            )),
            _ => Ok(()),
        }
    }
}
