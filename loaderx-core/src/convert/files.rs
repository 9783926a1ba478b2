//! Plain directories: each file a record.

use std::fs;
use std::path::Path;

use super::input::{files_below, relative_name};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::schema::Schema;

/// Imports every file below the directory `source` as a record of a new dataset `dest`.
///
/// Stream `content` holds the files' bytes, stream `name` their paths below `source`, both as ragged `u8`; the
/// order is that of the sorted paths. Hidden files and folders are left out.
///
/// # Errors
///
/// When `source` is no directory, holds no file, or a file cannot be read or is larger than a record may be;
/// [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when there is something in `dest`.
pub fn import_files(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let root = source.as_ref();
    let files = files_below(root)?;
    if files.is_empty() {
        return Err(Error::invalid("the directory holds no files").at_path(root));
    }
    let mut job = Job::begin(dest.as_ref(), options)?;
    let records = Some(files.len() as u64);
    job.meter.expect(records, None);
    let schema = Schema::ragged(DType::U8, &[])?;
    let mut content = job.stream("content", schema.clone(), records)?;
    let mut name = job.stream("name", schema, records)?;
    for file in &files {
        let bytes = fs::read(file).map_err(|error| Error::io("read the file", file, error))?;
        content.push(&bytes).map_err(|error| error.at_path(file))?;
        name.push(relative_name(root, file)?.as_bytes())?;
        job.meter.advance(1, bytes.len() as u64)?;
    }
    job.finish(vec![content, name])
}
