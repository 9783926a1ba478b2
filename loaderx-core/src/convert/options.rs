use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use super::format::Format;
use crate::codec::Codec;
use crate::dtype::DType;
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
    pub(super) codec_by_sample: bool,
    pub(super) format: Option<FormatVersion>,
    pub(super) select: Vec<String>,
    pub(super) renames: Vec<(String, String)>,
    pub(super) types: Vec<(String, DType)>,
    pub(super) fill: Option<f64>,
    pub(super) resize: Option<(u32, u32)>,
    pub(super) split: Option<String>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

impl ImportOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the records with this codec; raw by default. A dictionary is trained on the first records of each
    /// stream.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
        self
    }

    /// Chooses a codec by a sample of each stream's first records, weighing bytes and decoding speed as
    /// [`choose_codec`](super::choose_codec) does; [`ImportedStream::notes`] says which, and why.
    #[must_use]
    pub fn codec_by_sample(mut self) -> Self {
        self.codec_by_sample = true;
        self
    }

    /// Insists on a format version instead of the automatic choice; what does not fit it is then refused.
    #[must_use]
    pub fn format(mut self, version: FormatVersion) -> Self {
        self.format = Some(version);
        self
    }

    /// Imports only these streams of inputs that have several, named as in the input; all by default.
    #[must_use]
    pub fn select<S: Into<String>>(mut self, streams: impl IntoIterator<Item = S>) -> Self {
        self.select.extend(streams.into_iter().map(Into::into));
        self
    }

    /// Gives the stream `from` of the input the name `to`.
    #[must_use]
    pub fn rename(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.renames.push((from.into(), to.into()));
        self
    }

    /// Stores a numeric column of a text table as `dtype`, instead of the type that its values suggest (`i64`,
    /// `u64`, `f64` or `bool`).
    #[must_use]
    pub fn column_type(mut self, column: impl Into<String>, dtype: DType) -> Self {
        self.types.push((column.into(), dtype));
        self
    }

    /// Stores missing values as `value` where the column is numeric, and as empty records where it is text or
    /// lists. By default they are refused, with column and row.
    #[must_use]
    pub fn fill_nulls(mut self, value: f64) -> Self {
        self.fill = Some(value);
        self
    }

    /// Decodes images and resizes each to `height` x `width` with three channels, dense `u8`. By default they
    /// are stored encoded, as ragged `u8`.
    #[must_use]
    pub fn resize_images(mut self, height: u32, width: u32) -> Self {
        self.resize = Some((height, width));
        self
    }

    /// Imports the part files of this split of a directory that holds several, such as `train` of a snapshot with
    /// `data/train-00000-of-00002.parquet` and `data/test-00000-of-00001.parquet`. Without it, such a directory is
    /// refused.
    #[must_use]
    pub fn split(mut self, split: impl Into<String>) -> Self {
        self.split = Some(split.into());
        self
    }

    /// Reports to `progress`, which may also cancel.
    #[must_use]
    pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Refuses options that would mean nothing for an input of this format.
    pub(super) fn check_meaningful(&self, format: Format) -> Result<()> {
        use Format::{Arrow, Csv, Files, Idx, Images, Jsonl, Npy, Parquet, Tsv, WebDataset};
        let text = matches!(format, Csv | Tsv | Jsonl);
        let parts = matches!(format, Arrow | Parquet | WebDataset);
        let named = !matches!(format, Idx | Npy | Images | Files);
        for (given, fits, what) in [
            (!self.select.is_empty(), named, "no columns or arrays to select"),
            (!self.renames.is_empty(), named, "no columns or arrays to rename"),
            (!self.types.is_empty(), text, "no columns whose type can be chosen"),
            (self.fill.is_some(), text || parts, "no missing values to fill"),
            (self.resize.is_some(), format == Images, "no images to resize"),
            (self.split.is_some(), parts, "no splits to choose from"),
        ] {
            if given && !fits {
                return Err(Error::invalid(format!("an input of format {format} has {what}"))
                    .with_hint("leave the option out, or name the input's format if it was not recognised"));
            }
        }
        Ok(())
    }
}

#[cfg(any(
    feature = "arrow",
    feature = "csv",
    feature = "json",
    feature = "npy",
    feature = "safetensors",
    feature = "tar"
))]
impl ImportOptions {
    /// What the input's stream `name` is to be called; `None` when it is not wanted.
    pub(super) fn stream_name(&self, name: &str) -> Option<String> {
        if !self.select.is_empty() && !self.select.iter().any(|wanted| wanted == name) {
            return None;
        }
        let renamed = self.renames.iter().find(|(from, _)| from == name);
        Some(renamed.map_or(name, |(_, to)| to).to_owned())
    }

    /// The type that the caller wants for a column.
    #[cfg(any(feature = "csv", feature = "json"))]
    pub(super) fn wanted_type(&self, column: &str) -> Option<DType> {
        self.types.iter().find(|(name, _)| name == column).map(|&(_, dtype)| dtype)
    }

    /// Refuses names of streams in the options that the input does not have.
    pub(super) fn check_names<'n>(&self, known: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        let renamed = self.renames.iter().map(|(from, _)| from);
        let typed = self.types.iter().map(|(name, _)| name);
        for wanted in self.select.iter().chain(renamed).chain(typed) {
            if !known.clone().any(|name| name == wanted) {
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("the input has no stream {wanted:?}; it has {known}"),
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ImportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions")
            .field("codec", &self.codec)
            .field("codec_by_sample", &self.codec_by_sample)
            .field("format", &self.format)
            .field("select", &self.select)
            .field("renames", &self.renames)
            .field("types", &self.types)
            .field("fill", &self.fill)
            .field("resize", &self.resize)
            .field("split", &self.split)
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
    /// What its records mean; `None` where it was rewritten from stores of plain bytes.
    pub schema: Option<Schema>,
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

    /// Records reported so far.
    #[cfg(feature = "csv")]
    pub(super) fn records(&self) -> u64 {
        self.done.records
    }

    /// Reports no change: gives the caller a chance to cancel.
    #[cfg(any(feature = "csv", feature = "json"))]
    pub(super) fn pause(&mut self) -> Result<()> {
        self.advance(0, 0)
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
