//! Several files of one array each: the streams of one dataset.

use std::path::Path;

use super::array::Layout;
use super::format::Format;
use super::idx::IdxFile;
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::sink::Sink;
use crate::error::{Error, ErrorKind, Result};

/// An open file behind its validated header, which holds one array.
pub(super) trait ArrayFile {
    fn path(&self) -> &Path;

    fn layout(&self) -> &Layout;

    /// Copies every record into `sink` and makes sure that the file ends there.
    fn copy(self: Box<Self>, job: &mut Job<'_>, sink: &mut Sink) -> Result<()>;
}

/// Imports files of one array each, of equally many records, as the streams of a new dataset: each `(name, file)`
/// becomes the store `dest/name`. The files may be IDX or npy.
///
/// ```no_run
/// use loaderx_core::convert::{ImportOptions, import_streams};
///
/// let files = [("image", "train-images-idx3-ubyte.gz"), ("label", "labels.npy")];
/// import_streams(&files, "train", &ImportOptions::new())?;
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] when the files' headers count different numbers of records, before anything is
/// written; [`ErrorKind::Unsupported`] for a file of another format; otherwise as [`import_idx`](super::import_idx) and
/// `import_npy`.
pub fn import_streams<N: AsRef<str>, P: AsRef<Path>>(
    sources: &[(N, P)],
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let files = sources
        .iter()
        .map(|(name, source)| Ok((name.as_ref(), open(source.as_ref())?)))
        .collect::<Result<Vec<_>>>()?;
    import_open(files, dest.as_ref(), options)
}

fn open(path: &Path) -> Result<Box<dyn ArrayFile>> {
    match Format::detect(path)? {
        Format::Idx => Ok(Box::new(IdxFile::open(path)?)),
        #[cfg(feature = "npy")]
        Format::Npy => Ok(Box::new(super::npy::NpyFile::open(path)?)),
        other => Err(Error::new(
            ErrorKind::Unsupported,
            format!("files of several inputs hold one array each, idx or npy; this one is {other}"),
        )
        .at_path(path)
        .with_hint("import it by itself")),
    }
}

/// Imports open files as the streams of one dataset.
fn import_open(
    files: Vec<(&str, Box<dyn ArrayFile>)>,
    dest: &Path,
    options: &ImportOptions,
) -> Result<Imported> {
    let Some((_, first)) = files.first() else {
        return Err(Error::invalid("no files were given"));
    };
    options.check_meaningful(Format::Idx)?;
    let records = first.layout().records;
    if let Some((_, other)) = files.iter().find(|(_, file)| file.layout().records != records) {
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!(
                "{} has {records} records, {} has {}; the streams of a dataset are equally long",
                first.path().display(),
                other.path().display(),
                other.layout().records
            ),
        ));
    }
    let mut job = Job::begin(dest, options)?;
    let bytes = files.iter().map(|(_, file)| file.layout().content_bytes()).sum::<Result<u64>>()?;
    job.meter.expect(Some(records.saturating_mul(files.len() as u64)), Some(bytes));
    let mut sinks = Vec::new();
    for (name, file) in files {
        let schema = file.layout().schema().map_err(|error| error.at_path(file.path()))?;
        let mut sink = job.stream(name, schema, Some(records))?;
        file.copy(&mut job, &mut sink)?;
        sinks.push(sink);
    }
    job.finish(sinks)
}
