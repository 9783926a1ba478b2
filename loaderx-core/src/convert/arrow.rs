//! Arrow IPC: files (also called Feather) and streams.

use std::io::{BufRead, BufReader};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::columnar::{ColumnWriter, columns};
use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::parts::part_files;
use crate::error::{Error, Result};

/// Imports an Arrow IPC file or stream, or a directory of part files, into a new dataset `dest`, a stream for each
/// column.
///
/// Numbers, truth values and fixed-size lists become dense streams; strings, binaries and lists of numbers become
/// ragged ones; dates and times become the integers that they are; the fields of a struct become the streams
/// `struct.field`; dictionaries are written out. The input is read batch by batch, so memory holds one of its batches.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for other types, by column;
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a null when none to fill was given, with
/// column and row; [`ErrorKind::SchemaMismatch`](crate::ErrorKind::SchemaMismatch) when part files differ;
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for a damaged file;
/// [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when there is something in `dest`.
pub fn import_arrow(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let parts = part_files(source.as_ref(), &[".arrow", ".arrows", ".feather", ".ipc"], options)?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    let mut writer: Option<ColumnWriter> = None;
    for part in &parts {
        let damaged = |error: ArrowError| {
            Error::corrupt("this is no Arrow IPC file, or it is damaged").at_path(part).caused_by(error)
        };
        let (schema, batches) = open(part)?;
        let wanted = columns(schema.fields(), options).map_err(|error| error.at_path(part))?;
        let writer = match &mut writer {
            Some(writer) => {
                writer.check_same(&wanted).map_err(|error| error.at_path(part))?;
                writer
            }
            none => none.insert(ColumnWriter::create(wanted, None, &mut job, options)?),
        };
        for batch in batches {
            let batch = batch.map_err(damaged)?;
            writer.write(&batch).map_err(|error| error.at_path(part))?;
            job.meter.advance(batch.num_rows() as u64, batch.get_array_memory_size() as u64)?;
        }
    }
    job.finish(writer.map(ColumnWriter::into_sinks).unwrap_or_default())
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// Files start with a magic number, streams do not.
fn open(part: &Path) -> Result<(SchemaRef, Batches)> {
    let damaged = |error: ArrowError| {
        Error::corrupt("this is no Arrow IPC file, or it is damaged").at_path(part).caused_by(error)
    };
    let (mut file, _) = input::open(part)?;
    let start = file.fill_buf().map_err(|error| read_error(error, part))?;
    if start.starts_with(b"ARROW1") {
        let reader = FileReader::try_new(file, None).map_err(damaged)?;
        Ok((reader.schema(), Box::new(reader)))
    } else {
        let reader = StreamReader::try_new(BufReader::new(file), None).map_err(damaged)?;
        Ok((reader.schema(), Box::new(reader)))
    }
}
