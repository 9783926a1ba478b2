//! Column types of text tables: inferred in a first pass, written in a second.

use super::job::Job;
use super::number::{encode_float, encode_integer};
use super::options::ImportOptions;
use super::sink::Sink;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// The first pass can be cancelled at every so many rows.
pub(super) const PAUSE: u64 = 1 << 10;

/// One cell of a table, as its format spells it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Missing,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(&'a str),
    List(Vec<Cell<'a>>),
}

impl Cell<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Missing => "a missing value",
            Self::Bool(_) => "a truth value",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
        }
    }
}

/// What the cells of a column have been so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Inferred {
    scalars: Scalars,
    elements: Scalars,
    lists: bool,
    missing: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Scalars {
    bools: bool,
    integers: bool,
    floats: bool,
    text: bool,
    min: i128,
    max: i128,
}

impl Scalars {
    fn see(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Bool(_) => self.bools = true,
            Cell::Integer(value) => {
                self.integers = true;
                self.min = self.min.min(*value);
                self.max = self.max.max(*value);
            }
            Cell::Float(_) => self.floats = true,
            Cell::Text(_) => self.text = true,
            Cell::Missing | Cell::List(_) => {}
        }
    }

    fn any(&self) -> bool {
        self.bools || self.integers || self.floats || self.text
    }

    /// The element type that holds them all; `None` for text.
    fn dtype(&self) -> Result<Option<DType>> {
        let numbers = self.integers || self.floats;
        match (self.text, self.bools, numbers) {
            (true, false, false) => Ok(None),
            (false, true, false) => Ok(Some(DType::Bool)),
            (false, false, true) if self.floats => Ok(Some(DType::F64)),
            (false, false, true) if i64::try_from(self.max).is_ok() && i64::try_from(self.min).is_ok() => {
                Ok(Some(DType::I64))
            }
            (false, false, true) if u64::try_from(self.max).is_ok() && self.min >= 0 => Ok(Some(DType::U64)),
            (false, false, true) => Ok(Some(DType::F64)),
            (false, false, false) => Ok(Some(DType::F64)),
            _ => Err(Error::new(
                ErrorKind::SchemaMismatch,
                "its values are of several kinds: text, numbers and truth values do not mix",
            )),
        }
    }
}

impl Inferred {
    /// Takes the cell of row `row` (counted from 1, for messages) into account.
    pub(super) fn see(&mut self, cell: &Cell<'_>, row: u64) -> Result<()> {
        match cell {
            Cell::Missing => {
                self.missing.get_or_insert(row);
            }
            Cell::List(elements) => {
                self.lists = true;
                for element in elements {
                    if matches!(element, Cell::Missing | Cell::List(_) | Cell::Text(_)) {
                        return Err(Error::new(
                            ErrorKind::Unsupported,
                            format!("{} within a list, in row {row}", element.name()),
                        )
                        .with_hint("lists of numbers and of truth values can be imported"));
                    }
                    self.elements.see(element);
                }
            }
            scalar => self.scalars.see(scalar),
        }
        Ok(())
    }

    /// The column that holds what was seen.
    pub(super) fn column(&self, name: &str, options: &ImportOptions) -> Result<ColumnKind> {
        let about = |error: Error| {
            Error::new(error.kind(), format!("column {name:?}: {}", error.message()))
                .with_hint("clean the column, or leave it out by selecting the others")
        };
        if self.lists && self.scalars.any() {
            return Err(about(Error::new(ErrorKind::SchemaMismatch, "it mixes lists with single values")));
        }
        let wanted = options.wanted_type(name);
        let scalars = if self.lists { &self.elements } else { &self.scalars };
        let kind = match (scalars.dtype().map_err(about)?, wanted) {
            (None, None) => ColumnKind::Text,
            (None, Some(dtype)) => {
                return Err(about(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!("it holds text, which cannot become {dtype}"),
                )));
            }
            (Some(dtype), wanted) if self.lists => ColumnKind::Lists(wanted.unwrap_or(dtype)),
            (Some(dtype), wanted) => ColumnKind::Scalars(wanted.unwrap_or(dtype)),
        };
        if let Some(row) = self.missing
            && options.fill.is_none()
        {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("column {name:?} has a missing value in row {row}"),
            )
            .with_hint("give a value that missing ones are filled with, or leave the column out"));
        }
        Ok(kind)
    }
}

/// What a column is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// UTF-8 as ragged `u8`.
    Text,
    /// One number each, dense.
    Scalars(DType),
    /// Numbers each, ragged.
    Lists(DType),
}

/// A column that is being written.
pub(super) struct ColumnSink {
    name: String,
    kind: ColumnKind,
    fill: Option<f64>,
    sink: Sink,
    record: Vec<u8>,
}

impl ColumnSink {
    pub(super) fn create(
        job: &mut Job<'_>,
        column: &str,
        stream: &str,
        kind: ColumnKind,
        records: u64,
        fill: Option<f64>,
    ) -> Result<Self> {
        let schema = match kind {
            ColumnKind::Text => Schema::ragged(DType::U8, &[])?,
            ColumnKind::Scalars(dtype) => Schema::dense(dtype, &[])?,
            ColumnKind::Lists(dtype) => Schema::ragged(dtype, &[])?,
        };
        let sink = job.stream(stream, schema, Some(records))?;
        Ok(Self { name: column.to_owned(), kind, fill, sink, record: Vec::new() })
    }

    /// Writes the cell of row `row`, counted from 1.
    pub(super) fn push(&mut self, cell: &Cell<'_>, row: u64) -> Result<()> {
        self.record.clear();
        let written = match (self.kind, cell) {
            (ColumnKind::Text, Cell::Text(text)) => {
                self.record.extend_from_slice(text.as_bytes());
                true
            }
            (ColumnKind::Scalars(dtype), Cell::Missing) => match self.fill {
                Some(value) => encode(&Cell::Float(value), dtype, &mut self.record),
                None => false,
            },
            (ColumnKind::Text | ColumnKind::Lists(_), Cell::Missing) => self.fill.is_some(),
            (ColumnKind::Lists(dtype), Cell::List(elements)) => {
                elements.iter().all(|element| encode(element, dtype, &mut self.record))
            }
            (ColumnKind::Scalars(dtype), cell) => encode(cell, dtype, &mut self.record),
            _ => false,
        };
        if !written {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!(
                    "column {:?}, row {row}: {} does not go into {}",
                    self.name,
                    self.describe(cell),
                    self.target()
                ),
            )
            .with_hint("choose another type for the column"));
        }
        self.sink.push(&self.record)
    }

    #[cfg(feature = "csv")]
    pub(super) fn is_text(&self) -> bool {
        self.kind == ColumnKind::Text
    }

    pub(super) fn into_sink(self) -> Sink {
        self.sink
    }

    fn describe(&self, cell: &Cell<'_>) -> String {
        match cell {
            Cell::Integer(value) => format!("the value {value}"),
            Cell::Float(value) => format!("the value {value}"),
            Cell::Missing if self.fill.is_some() => {
                format!("the fill value {}", self.fill.unwrap_or_default())
            }
            other => other.name().to_owned(),
        }
    }

    fn target(&self) -> String {
        match self.kind {
            ColumnKind::Text => "a column of text".to_owned(),
            ColumnKind::Scalars(dtype) => format!("a column of {dtype}"),
            ColumnKind::Lists(dtype) => format!("a column of lists of {dtype}"),
        }
    }
}

/// Appends the bytes of a cell as `dtype`; `false` when the type cannot hold it.
fn encode(cell: &Cell<'_>, dtype: DType, out: &mut Vec<u8>) -> bool {
    match *cell {
        Cell::Integer(value) => encode_integer(value, dtype, out),
        Cell::Float(value) => encode_float(value, dtype, out),
        Cell::Bool(value) if dtype == DType::Bool => {
            out.push(u8::from(value));
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_choose_the_type_that_holds_them_all() {
        let kind = |cells: &[Cell<'_>]| {
            let mut inferred = Inferred::default();
            for (row, cell) in (1..).zip(cells) {
                inferred.see(cell, row).unwrap();
            }
            inferred.column("c", &ImportOptions::new())
        };
        let large = i128::from(u64::MAX);
        assert_eq!(kind(&[Cell::Integer(1), Cell::Integer(-1)]).unwrap(), ColumnKind::Scalars(DType::I64));
        assert_eq!(kind(&[Cell::Integer(1), Cell::Integer(large)]).unwrap(), ColumnKind::Scalars(DType::U64));
        assert_eq!(
            kind(&[Cell::Integer(-1), Cell::Integer(large)]).unwrap(),
            ColumnKind::Scalars(DType::F64)
        );
        assert_eq!(kind(&[Cell::Integer(1), Cell::Float(0.5)]).unwrap(), ColumnKind::Scalars(DType::F64));
        assert_eq!(kind(&[Cell::List(vec![Cell::Integer(1)])]).unwrap(), ColumnKind::Lists(DType::I64));
        assert!(kind(&[Cell::Integer(1), Cell::Bool(true)]).is_err());
        let error = kind(&[Cell::Integer(1), Cell::Missing]).unwrap_err();
        assert!(error.message().contains("\"c\"") && error.message().contains("row 2"), "{error}");
    }
}
