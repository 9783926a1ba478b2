//! Parquet files and directories of them, such as a snapshot's `data/*.parquet`.

use std::fs::File;
use std::path::Path;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::columnar::{Column, ColumnWriter, columns};
use super::input::read_error;
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::parts::part_files;
use crate::error::{Error, Result};

/// Rows are read in batches of about this many bytes.
const BATCH_BYTES: u64 = 16 << 20;

/// Imports a Parquet file, or every Parquet file below a directory in the order of their names, into a new dataset
/// `dest`, a stream for each column.
///
/// Columns become streams as with [`import_arrow`](super::import_arrow). Row groups are streamed in batches of
/// bounded size; only the wanted columns are read.
///
/// # Errors
///
/// As [`import_arrow`](super::import_arrow).
pub fn import_parquet(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let parts = part_files(source.as_ref(), &[".parquet", ".pq"], options)?;
    let mut rows = 0;
    for part in &parts {
        rows += count(open(part)?.metadata().file_metadata().num_rows());
    }
    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(Some(rows), None);
    let mut writer: Option<ColumnWriter> = None;
    for part in &parts {
        let builder = open(part)?;
        let wanted = columns(builder.schema().fields(), options).map_err(|error| error.at_path(part))?;
        let (mask, projected) = project(&builder, wanted)?;
        let writer = match &mut writer {
            Some(writer) => {
                writer.check_same(&projected).map_err(|error| error.at_path(part))?;
                writer
            }
            none => none.insert(ColumnWriter::create(projected, Some(rows), &mut job, options)?),
        };
        let batch_rows = batch_rows(&builder);
        let reader = builder
            .with_projection(mask)
            .with_batch_size(batch_rows)
            .build()
            .map_err(|error| damaged(error, part))?;
        for batch in reader {
            let batch = batch.map_err(|error| damaged(error, part))?;
            writer.write(&batch).map_err(|error| error.at_path(part))?;
            job.meter.advance(batch.num_rows() as u64, batch.get_array_memory_size() as u64)?;
        }
    }
    job.finish(writer.map(ColumnWriter::into_sinks).unwrap_or_default())
}

fn open(part: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(part).map_err(|error| read_error(error, part))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(error, part))
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>, part: &Path) -> Error {
    Error::corrupt("this is no Parquet file, it is damaged, or it uses a codec that this build lacks")
        .at_path(part)
        .caused_by(error)
}

/// Counts in Parquet's metadata are signed.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Reads only the top-level columns that something wanted is in; the columns' paths then count those.
fn project(
    builder: &ParquetRecordBatchReaderBuilder<File>,
    mut wanted: Vec<Column>,
) -> Result<(ProjectionMask, Vec<Column>)> {
    let mut roots: Vec<usize> = wanted.iter().filter_map(|column| column.path.first().copied()).collect();
    roots.sort_unstable();
    roots.dedup();
    for column in &mut wanted {
        if let Some(first) = column.path.first_mut() {
            *first = roots
                .binary_search(first)
                .map_err(|_| Error::corrupt("a wanted column is not among those read"))?;
        }
    }
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    Ok((mask, wanted))
}

/// Rows that a batch may have by the average row's size.
fn batch_rows(builder: &ParquetRecordBatchReaderBuilder<File>) -> usize {
    let widest = builder
        .metadata()
        .row_groups()
        .iter()
        .filter(|group| group.num_rows() > 0)
        .map(|group| count(group.total_byte_size()) / count(group.num_rows()))
        .max();
    let rows = (BATCH_BYTES / widest.unwrap_or(1).max(1)).clamp(1, 1 << 16);
    usize::try_from(rows).unwrap_or(1)
}
