//! CSV and TSV: each column a stream, numbers as numbers, the rest as text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::infer::{Cell, ColumnSink, Inferred, PAUSE};
use super::input;
use super::job::Job;
use super::options::{ImportOptions, Imported, Meter};
use crate::error::{Error, Result};

/// Imports the delimited text file `source`, plain or gzip, into a new dataset `dest`, a stream for each column.
///
/// The first line names the columns. `delimiter` is `b','` for CSV and `b'\t'` for TSV. The file is read twice:
/// once to find what each column holds (`bool` for true and false, `i64` or `u64` for integers, `f64` for
/// numbers, else text as ragged `u8`), once to write. An empty cell of a numeric column is a missing value.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for a line with another number of cells or invalid UTF-8,
/// with its line; when a value is missing and none to fill was given, or does not fit the type that was asked
/// for, with column and row; [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when there is
/// something in `dest`.
pub fn import_csv(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    delimiter: u8,
    options: &ImportOptions,
) -> Result<Imported> {
    let path = source.as_ref();
    let mut reader = open(path, delimiter)?;
    let names: Vec<String> =
        reader.headers().map_err(|error| csv_error(error, path))?.iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Error::invalid("the file is empty: its first line would name the columns").at_path(path));
    }
    options.check_names(names.iter().map(String::as_str)).map_err(|error| error.at_path(path))?;
    let columns: Vec<Option<String>> = names.iter().map(|name| options.stream_name(name)).collect();

    let mut inferred = vec![Inferred::default(); names.len()];
    let mut text = vec![false; names.len()];
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    let mut meter = Meter::new(options.progress.clone());
    while reader.read_record(&mut record).map_err(|error| csv_error(error, path))? {
        rows += 1;
        if rows % PAUSE == 0 {
            meter.pause()?;
        }
        for ((cell, inferred), text) in record.iter().zip(&mut inferred).zip(&mut text) {
            let cell = parse(cell);
            *text |= matches!(cell, Cell::Text(_));
            inferred.see(&cell, rows)?;
        }
    }

    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(Some(rows), None);
    let mut sinks: Vec<Option<ColumnSink>> = Vec::new();
    for (((name, stream), inferred), &text) in names.iter().zip(&columns).zip(&inferred).zip(&text) {
        let Some(stream) = stream else {
            sinks.push(None);
            continue;
        };
        // One cell that is no number makes the whole column text, its empty cells and numbers included.
        let kind = if text && options.wanted_type(name).is_none() {
            super::infer::ColumnKind::Text
        } else {
            inferred.column(name, options).map_err(|error| error.at_path(path))?
        };
        sinks.push(Some(ColumnSink::create(&mut job, name, stream, kind, rows, options.fill)?));
    }
    let mut reader = open(path, delimiter)?;
    let mut row = 0;
    let mut reported = 0;
    while reader.read_record(&mut record).map_err(|error| csv_error(error, path))? {
        row += 1;
        for (cell, sink) in record.iter().zip(&mut sinks) {
            let Some(sink) = sink else { continue };
            let cell = if sink.is_text() { Cell::Text(cell) } else { parse(cell) };
            sink.push(&cell, row).map_err(|error| error.at_path(path))?;
        }
        let position = reader.position().byte();
        if position - reported >= 1 << 18 {
            job.meter.advance(row - job.meter.records(), position - reported)?;
            reported = position;
        }
    }
    job.meter.advance(row - job.meter.records(), reader.position().byte() - reported)?;
    job.finish(sinks.into_iter().flatten().map(ColumnSink::into_sink).collect())
}

fn open(path: &Path, delimiter: u8) -> Result<csv::Reader<Box<dyn Read>>> {
    let (file, _): (std::io::BufReader<File>, _) = input::open(path)?;
    let (input, _) = input::unzipped(file, path)?;
    Ok(csv::ReaderBuilder::new().delimiter(delimiter).from_reader(input))
}

fn parse(cell: &str) -> Cell<'_> {
    let trimmed = cell.trim();
    if trimmed.is_empty() {
        return Cell::Missing;
    }
    if let Ok(value) = trimmed.parse::<i64>() {
        // "+5" and "007" are more likely names than numbers, and would not come back as they were.
        if value.to_string() == trimmed {
            return Cell::Integer(value.into());
        }
        return Cell::Text(cell);
    }
    if let Ok(value) = trimmed.parse::<u64>() {
        return Cell::Integer(value.into());
    }
    match trimmed {
        "true" | "True" | "TRUE" => return Cell::Bool(true),
        "false" | "False" | "FALSE" => return Cell::Bool(false),
        _ => {}
    }
    match trimmed.parse::<f64>() {
        Ok(value) => Cell::Float(value),
        Err(_) => Cell::Text(cell),
    }
}

fn csv_error(error: csv::Error, path: &Path) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => input::read_error(error, path),
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.map_or(0, |pos| pos.line());
            Error::corrupt(format!("line {line} has {len} cells, the first line {expected_len}"))
                .at_path(path)
        }
        csv::ErrorKind::Utf8 { pos, .. } => {
            let line = pos.map_or(0, |pos| pos.line());
            Error::corrupt(format!("line {line} is not valid UTF-8")).at_path(path)
        }
        other => Error::corrupt(format!("the table cannot be read: {other:?}")).at_path(path),
    }
}
