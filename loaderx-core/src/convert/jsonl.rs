//! JSON lines: each key a stream.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use super::infer::{Cell, ColumnSink, Inferred, PAUSE};
use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported, Meter};
use crate::error::{Error, Result};

/// Imports the JSON lines file `source`, plain or gzip, into a new dataset `dest`, a stream for each key.
///
/// Every line is an object. The file is read twice: once to find what each key holds (`bool`, `i64`, `u64` or
/// `f64`, lists of these as ragged records, text as ragged `u8`), once to write. A key that a line leaves out, and
/// `null`, are missing values. Empty lines are passed over.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for a line that is no object, with its number;
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for nested objects and lists of anything but
/// numbers; when a value is missing and none to fill was given, or does not fit, with key and row;
/// [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when there is something in `dest`.
pub fn import_jsonl(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let path = source.as_ref();
    let mut inferred: BTreeMap<String, (Inferred, u64)> = BTreeMap::new();
    let mut rows = 0;
    let mut meter = Meter::new(options.progress.clone());
    each_line(path, |object, row, _| {
        rows = row;
        if row % PAUSE == 0 {
            meter.pause()?;
        }
        for (key, value) in object {
            if options.stream_name(key).is_none() {
                continue;
            }
            let (inferred, seen) = inferred.entry(key.clone()).or_default();
            if *seen + 1 < row {
                inferred.see(&Cell::Missing, *seen + 1)?;
            }
            *seen = row;
            inferred.see(&cell(value, key)?, row)?;
        }
        Ok(())
    })?;
    options.check_names(inferred.keys().map(String::as_str)).map_err(|error| error.at_path(path))?;

    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(Some(rows), None);
    let mut sinks = Vec::new();
    for (key, (mut inferred, seen)) in inferred {
        if seen < rows {
            inferred.see(&Cell::Missing, seen + 1)?;
        }
        let kind = inferred.column(&key, options).map_err(|error| error.at_path(path))?;
        let stream = options.stream_name(&key).unwrap_or_else(|| key.clone());
        let sink = ColumnSink::create(&mut job, &key, &stream, kind, rows, options.fill)?;
        sinks.push((key, sink));
    }
    let mut reported = (0, 0);
    each_line(path, |object, row, bytes| {
        for (key, sink) in &mut sinks {
            let cell = object.get(key.as_str()).map_or(Ok(Cell::Missing), |value| cell(value, key))?;
            sink.push(&cell, row)?;
        }
        if bytes - reported.1 >= 1 << 18 || row == rows {
            job.meter.advance(row - reported.0, bytes - reported.1)?;
            reported = (row, bytes);
        }
        Ok(())
    })?;
    job.finish(sinks.into_iter().map(|(_, sink)| sink.into_sink()).collect())
}

/// Calls `f` with each object, its row counted from 1, and the bytes read so far.
fn each_line(path: &Path, mut f: impl FnMut(&Map<String, Value>, u64, u64) -> Result<()>) -> Result<()> {
    let (file, _) = input::open(path)?;
    let (input, _) = input::unzipped(file, path)?;
    let mut input = BufReader::new(input);
    let (mut line, mut number, mut row, mut bytes) = (Vec::new(), 0_u64, 0, 0);
    loop {
        line.clear();
        let count = input.read_until(b'\n', &mut line).map_err(|error| read_error(error, path))?;
        if count == 0 {
            return Ok(());
        }
        number += 1;
        bytes += count as u64;
        if line.trim_ascii().is_empty() {
            continue;
        }
        row += 1;
        let object: Map<String, Value> = serde_json::from_slice(&line).map_err(|error| {
            Error::corrupt(format!("line {number} is not a JSON object")).at_path(path).caused_by(error)
        })?;
        f(&object, row, bytes).map_err(|error| error.at_path(path))?;
    }
}

fn cell<'a>(value: &'a Value, key: &str) -> Result<Cell<'a>> {
    Ok(match value {
        Value::Null => Cell::Missing,
        Value::Bool(value) => Cell::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Cell::Integer(value.into()),
            (None, Some(value)) => Cell::Integer(value.into()),
            (None, None) => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Text(text),
        Value::Array(values) => {
            Cell::List(values.iter().map(|value| cell(value, key)).collect::<Result<_>>()?)
        }
        Value::Object(_) => {
            return Err(Error::new(
                crate::error::ErrorKind::Unsupported,
                format!("key {key:?} holds an object; nested objects are not imported"),
            )
            .with_hint("flatten it, or leave the key out by selecting the others"));
        }
    })
}
