//! Arrow's columns as streams: the common part of Arrow IPC and Parquet.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::job::Job;
use super::number::encode_float;
use super::options::ImportOptions;
use super::sink::Sink;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// A column that becomes a stream: a field of the input, or of a struct in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// The names from the outermost struct to the field, with dots.
    pub(super) name: String,
    /// The positions to follow from the batch to the field.
    pub(super) path: Vec<usize>,
    pub(super) schema: Schema,
    note: Option<String>,
}

/// The wanted columns of an input.
pub(super) fn columns(fields: &Fields, options: &ImportOptions) -> Result<Vec<Column>> {
    let mut leaves = Vec::new();
    flatten(fields, "", &mut Vec::new(), &mut leaves);
    options.check_names(leaves.iter().map(|(name, _, _)| name.as_str()))?;
    let wanted = leaves.into_iter().filter(|(name, _, _)| options.stream_name(name).is_some());
    wanted
        .map(|(name, path, field)| {
            let schema = stream_schema(field.data_type()).map_err(|error| {
                Error::new(error.kind(), format!("column {name:?}: {}", error.message()))
                    .with_hint("leave the column out by selecting the others")
            })?;
            let note = calendar_unit(field.data_type())
                .map(|unit| format!("column {name:?} is stored as integers that count {unit}"));
            Ok(Column { name, path, schema, note })
        })
        .collect()
}

/// A field that is no struct: its dotted name, the positions that lead to it, and itself.
type Leaf<'a> = (String, Vec<usize>, &'a Field);

fn flatten<'a>(fields: &'a Fields, prefix: &str, path: &mut Vec<usize>, leaves: &mut Vec<Leaf<'a>>) {
    for (position, field) in fields.iter().enumerate() {
        let name = format!("{prefix}{}", field.name());
        path.push(position);
        match field.data_type() {
            DataType::Struct(inner) => flatten(inner, &format!("{name}."), path, leaves),
            _ => leaves.push((name, path.clone(), field)),
        }
        path.pop();
    }
}

fn stream_schema(data_type: &DataType) -> Result<Schema> {
    match data_type {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => Schema::ragged(DType::U8, &[]),
        DataType::List(item) | DataType::LargeList(item) => {
            let (dtype, shape) = item_of(item.data_type())?;
            Schema::ragged(dtype, &shape)
        }
        DataType::Dictionary(_, values) => stream_schema(values),
        other => {
            let (dtype, shape) = item_of(other)?;
            Schema::dense(dtype, &shape)
        }
    }
}

/// Element type and shape of a type whose values all have one size.
fn item_of(data_type: &DataType) -> Result<(DType, Vec<usize>)> {
    let dtype = match data_type {
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => DType::I32,
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::FixedSizeBinary(size) => return Ok((DType::U8, vec![side(*size)?])),
        DataType::FixedSizeList(item, size) => {
            let (dtype, mut shape) = item_of(item.data_type())?;
            shape.insert(0, side(*size)?);
            return Ok((dtype, shape));
        }
        other => {
            return Err(Error::new(ErrorKind::Unsupported, format!("the type {other} cannot be imported")));
        }
    };
    Ok((dtype, Vec::new()))
}

fn side(size: i32) -> Result<usize> {
    usize::try_from(size).map_err(|_| Error::corrupt(format!("a fixed size of {size}")))
}

/// What the integers of a date or time count.
fn calendar_unit(data_type: &DataType) -> Option<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    };
    Some(match data_type {
        DataType::Date32 => "days since 1970".to_owned(),
        DataType::Date64 => "milliseconds since 1970".to_owned(),
        DataType::Time32(of) | DataType::Time64(of) => format!("{} since midnight", unit(of)),
        DataType::Timestamp(of, _) => format!("{} since 1970", unit(of)),
        DataType::Duration(of) => unit(of).to_owned(),
        _ => return None,
    })
}

/// Writes batches into the streams.
pub(super) struct ColumnWriter {
    columns: Vec<Column>,
    sinks: Vec<Sink>,
    fill: Option<f64>,
    rows: u64,
    record: Vec<u8>,
}

impl ColumnWriter {
    pub(super) fn create(
        columns: Vec<Column>,
        records: Option<u64>,
        job: &mut Job<'_>,
        options: &ImportOptions,
    ) -> Result<Self> {
        let mut sinks = Vec::new();
        for column in &columns {
            let name = options.stream_name(&column.name).unwrap_or_else(|| column.name.clone());
            let mut sink = job.stream(&name, column.schema.clone(), records)?;
            if let Some(note) = &column.note {
                sink.note(note.clone());
            }
            sinks.push(sink);
        }
        Ok(Self { columns, sinks, fill: options.fill, rows: 0, record: Vec::new() })
    }

    /// Refuses a further part file whose columns differ from the first one's.
    pub(super) fn check_same(&self, columns: &[Column]) -> Result<()> {
        if self.columns == columns {
            return Ok(());
        }
        let list = |columns: &[Column]| {
            columns.iter().map(|c| format!("{} ({})", c.name, c.schema)).collect::<Vec<_>>().join(", ")
        };
        Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!("the columns are {}; the first file has {}", list(columns), list(&self.columns)),
        ))
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for (column, sink) in self.columns.iter().zip(&mut self.sinks) {
            let array = follow(batch, &column.path)?;
            if array.null_count() == 0
                && let Some(bytes) = plain_bytes(&array)
                && column.schema.item_bytes() > 0
            {
                sink.push_all(&bytes)?;
                continue;
            }
            for row in 0..array.len() {
                self.record.clear();
                let written = write_value(&*array, row, self.fill, &mut self.record).map_err(|error| {
                    Error::new(error.kind(), format!("column {:?}: {}", column.name, error.message()))
                })?;
                if !written {
                    return Err(Error::new(
                        ErrorKind::InvalidArgument,
                        format!("column {:?} has a null in row {}", column.name, self.rows + row as u64),
                    )
                    .with_hint("give a value that nulls are filled with, or leave the column out"));
                }
                sink.push(&self.record)?;
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    pub(super) fn into_sinks(self) -> Vec<Sink> {
        self.sinks
    }
}

/// The array at the end of the path, its nulls those of the structs around it too.
fn follow(batch: &RecordBatch, path: &[usize]) -> Result<ArrayRef> {
    let missing = || Error::corrupt("a batch has fewer columns than its schema");
    let (&first, rest) = path.split_first().ok_or_else(missing)?;
    let mut array = batch.columns().get(first).cloned().ok_or_else(missing)?;
    for &position in rest {
        let outer = array.as_struct_opt().ok_or_else(missing)?;
        if outer.null_count() > 0 {
            return Err(Error::new(ErrorKind::Unsupported, "a struct is null")
                .with_hint("replace null structs by structs of nulls, or leave their columns out"));
        }
        array = outer.columns().get(position).cloned().ok_or_else(missing)?;
    }
    Ok(array)
}

/// Matches the array's type and runs the body with `$values` as its primitive values.
macro_rules! with_primitive {
    ($array:expr, $data_type:expr, |$values:ident| $body:expr, $other:expr) => {
        with_primitive!(@ $array, $data_type, |$values| $body, $other,
            Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
            UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type,
            Float16 => Float16Type, Float32 => Float32Type, Float64 => Float64Type)
    };
    (@ $array:expr, $data_type:expr, |$values:ident| $body:expr, $other:expr, $($kind:ident => $type:ty),+) => {
        match $data_type {
            $(DataType::$kind => { let $values = $array.as_primitive::<$type>().values(); $body })+
            _ => $other,
        }
    };
}

/// The bytes of all rows, where they lie in memory as they are stored.
fn plain_bytes(array: &ArrayRef) -> Option<Vec<u8>> {
    if let DataType::FixedSizeList(_, size) = array.data_type() {
        let list = array.as_fixed_size_list();
        let size = usize::try_from(*size).ok()?;
        let start = list.value_offset_at(0);
        let values = list.values().slice(start, list.len() * size);
        return if values.null_count() == 0 { plain_bytes(&values) } else { None };
    }
    with_primitive!(
        array,
        array.data_type(),
        |values| Some(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        None
    )
}

/// Appends the bytes of one row; `false` for a null that is not to be filled.
fn write_value(array: &dyn Array, row: usize, fill: Option<f64>, out: &mut Vec<u8>) -> Result<bool> {
    if array.is_null(row) {
        return fill.map_or(Ok(false), |value| write_fill(array.data_type(), value, out));
    }
    match array.data_type() {
        DataType::Boolean => out.push(u8::from(array.as_boolean().value(row))),
        DataType::Utf8 => out.extend(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => out.extend(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => out.extend(array.as_string_view().value(row).as_bytes()),
        DataType::Binary => out.extend(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => out.extend(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => out.extend(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => out.extend(array.as_fixed_size_binary().value(row)),
        DataType::FixedSizeList(_, _) => {
            return write_all(&array.as_fixed_size_list().value(row), fill, out);
        }
        DataType::List(_) => return write_all(&array.as_list::<i32>().value(row), fill, out),
        DataType::LargeList(_) => return write_all(&array.as_list::<i64>().value(row), fill, out),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let mut key = Vec::with_capacity(8);
            write_value(dictionary.keys(), row, None, &mut key)?;
            // Keys are integers that count from 0, so the missing upper bytes are zeros.
            key.resize(8, 0);
            let key = <[u8; 8]>::try_from(key)
                .map(u64::from_le_bytes)
                .ok()
                .and_then(|key| usize::try_from(key).ok());
            let values = dictionary.values();
            let key = key.filter(|&key| key < values.len());
            let key = key.ok_or_else(|| Error::corrupt("a dictionary has no value for a key"))?;
            return write_value(&**values, key, fill, out);
        }
        other => with_primitive!(
            array,
            other,
            |values| out.extend(values.get(row).into_iter().flat_map(|value| value.to_le_bytes())),
            return write_calendar(array, row, out)
        ),
    }
    Ok(true)
}

fn write_all(values: &ArrayRef, fill: Option<f64>, out: &mut Vec<u8>) -> Result<bool> {
    if values.null_count() == 0
        && let Some(bytes) = plain_bytes(values)
    {
        out.extend(bytes);
        return Ok(true);
    }
    for row in 0..values.len() {
        if !write_value(&**values, row, fill, out)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Dates and times are integers below.
fn write_calendar(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<bool> {
    let (dtype, _) = item_of(array.data_type())?;
    let data = array.to_data();
    let bytes = data.buffers().first().map(|buffer| buffer.as_slice()).unwrap_or_default();
    let start = (data.offset() + row) * dtype.size();
    match bytes.get(start..start + dtype.size()) {
        Some(value) => {
            out.extend_from_slice(value);
            Ok(true)
        }
        None => Err(Error::corrupt("a column is shorter than its batch")),
    }
}

/// Appends what a null of this type is filled with.
fn write_fill(data_type: &DataType, value: f64, out: &mut Vec<u8>) -> Result<bool> {
    let schema = stream_schema(data_type)?;
    if schema.kind() == crate::schema::Kind::Ragged {
        return Ok(true);
    }
    for _ in 0..schema.item_elements() {
        if !encode_float(value, schema.dtype(), out) {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!("the fill value {value} does not go into {}", schema.dtype()),
            ));
        }
    }
    Ok(true)
}
