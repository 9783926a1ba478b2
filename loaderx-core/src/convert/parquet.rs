//! Parquet files and directories of them, such as a snapshot's `data/*.parquet`.

use std::fs::File;
use std::path::Path;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::basic::Type;
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::columnar::{Column, ColumnWriter, columns};
use super::input::read_error;
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::parts::part_files;
use crate::error::{Error, Result};

/// Rows are read in batches of about this many bytes.
const BATCH_BYTES: u64 = 16 << 20;
/// The most rows of a batch whose size cannot be told.
const GUESSED_ROWS: u64 = 256;

/// Imports a Parquet file, or every Parquet file below a directory in the order of their names, into a new dataset
/// `dest`, a stream for each column.
///
/// Columns become streams as with [`import_arrow`](super::import_arrow). Row groups are streamed in batches of
/// about 16 MiB, so that memory holds such a batch and a page of each wanted column, whatever the size of the file; only
/// the wanted columns are read.
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
        let batch_rows = batch_rows(&builder, &mask);
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

/// Rows that a batch may have by the average row's decoded size in the widest row group.
fn batch_rows(builder: &ParquetRecordBatchReaderBuilder<File>, mask: &ProjectionMask) -> usize {
    let groups = builder.metadata().row_groups().iter().filter(|group| group.num_rows() > 0);
    let rows = groups.map(|group| {
        let wanted = || (0..).zip(group.columns()).filter(|&(leaf, _)| mask.leaf_included(leaf));
        let bytes = wanted().map(|(_, column)| decoded_bytes(column)).fold(0, u64::saturating_add);
        let most = if wanted().any(|(_, column)| is_guess(column)) { GUESSED_ROWS } else { 1 << 16 };
        (BATCH_BYTES / (bytes / count(group.num_rows())).max(1)).clamp(1, most)
    });
    usize::try_from(rows.min().unwrap_or(1)).unwrap_or(1)
}

/// About how many bytes a column has when it is decoded. Encoded ones tell little: a value of a dictionary counts once.
fn decoded_bytes(column: &ColumnChunkMetaData) -> u64 {
    let width = match column.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => count(column.column_descr().type_length().into()),
        Type::BYTE_ARRAY => {
            let told = column.unencoded_byte_array_data_bytes().unwrap_or(0);
            return count(told.max(column.uncompressed_size()));
        }
    };
    width * count(column.num_values())
}

/// Whether the decoded size of a column is only guessed: older writers do not tell it for texts in a dictionary.
fn is_guess(column: &ColumnChunkMetaData) -> bool {
    column.column_type() == Type::BYTE_ARRAY
        && column.dictionary_page_offset().is_some()
        && column.unencoded_byte_array_data_bytes().is_none()
}
