use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, LargeBinaryArray, LargeListArray, PrimitiveArray, RecordBatch,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::ExportOptions;
use crate::convert::blocks::fitting;
use crate::convert::described::described;
use crate::convert::staging::Staging;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Kind, Schema};
use crate::store::Store;

/// Rows of one batch hold about this many bytes, and a row group at most so many.
const BATCH_BYTES: u64 = 16 << 20;
const MAX_BATCH_ROWS: u64 = 1 << 16;

/// Writes stores of equally many records as the columns of the Parquet file `dest`, compressed with zstd; returns
/// the number of records.
///
/// Dense scalars become primitive columns, other dense records nested fixed-size lists, ragged `u8` binary columns,
/// other ragged records lists. Plain bytes of a store without a schema become a binary column, unless
/// [`ExportOptions::schema`] says what they are. [`import_parquet`](crate::convert::import_parquet) gives the same bytes back.
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] when the streams differ in length or a record is not what the schema says; [`ErrorKind::Unsupported`] for `bf16`, which
/// Parquet lacks, and for shapes with a side of 0; [`ErrorKind::AlreadyExists`] when `dest` exists; when the file
/// cannot be written or stored bytes are damaged.
pub fn export_parquet(
    streams: &[(&str, &Store)],
    dest: impl AsRef<Path>,
    options: &ExportOptions,
) -> Result<u64> {
    let Some((_, first)) = streams.first() else {
        return Err(Error::invalid("there are no streams to export"));
    };
    let records = first.len();
    let (mut fields, mut schemas) = (Vec::new(), Vec::new());
    for (name, store) in streams {
        if store.len() != records {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!("stream {name:?} has {} records, the first one {records}", store.len()),
            )
            .at_path(store.path()));
        }
        let schema = match described(store, options.schema.as_ref())? {
            Some(schema) => schema,
            None => Schema::ragged(DType::U8, &[])?,
        };
        let data_type = column_type(&schema)
            .map_err(|error| Error::new(error.kind(), format!("stream {name:?}: {}", error.message())))?;
        fields.push(Field::new(*name, data_type, false));
        schemas.push(schema);
    }
    let staging = Staging::begin(dest)?;
    let path = staging.path().to_path_buf();
    let failed = |error: parquet::errors::ParquetError| {
        Error::new(ErrorKind::Io, "failed to write the Parquet file").at_path(&path).caused_by(error)
    };
    let file = File::create_new(&path).map_err(|error| Error::io("create the Parquet file", &path, error))?;
    let synced = file.try_clone().map_err(|error| Error::io("create the Parquet file", &path, error))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_bytes(usize::try_from(8 * BATCH_BYTES).ok())
        .build();
    let columns = Arc::new(arrow_schema::Schema::new(fields));
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&columns), Some(properties)).map_err(failed)?;
    let mut meter = options.meter(records);
    let mut next = 0;
    while next < records {
        let indices: Vec<u64> = (next..records.min(next + MAX_BATCH_ROWS)).collect();
        let totals = total_lengths(streams, &indices)?;
        let (mut rest, mut rest_totals) = (indices.as_slice(), totals.as_slice());
        while !rest.is_empty() {
            let count = fitting(rest_totals, BATCH_BYTES);
            let (batch, tail) = rest.split_at_checked(count).unwrap_or_default();
            let arrays = streams
                .iter()
                .zip(&schemas)
                .map(|((_, store), schema)| column(store, schema, batch))
                .collect::<Result<Vec<_>>>()?;
            let bytes = arrays.iter().map(|array| array.get_array_memory_size() as u64).sum();
            let rows =
                RecordBatch::try_new(Arc::clone(&columns), arrays).map_err(|error| failed(error.into()))?;
            writer.write(&rows).map_err(failed)?;
            meter.advance(batch.len() as u64, bytes)?;
            rest = tail;
            rest_totals = rest_totals.get(count..).unwrap_or_default();
        }
        next += indices.len() as u64;
    }
    writer.close().map_err(failed)?;
    synced.sync_all().map_err(|error| Error::io("sync the Parquet file", &path, error))?;
    staging.commit()?;
    Ok(records)
}

/// Bytes of each row, of all its streams.
fn total_lengths(streams: &[(&str, &Store)], indices: &[u64]) -> Result<Vec<u64>> {
    let mut totals = vec![0_u64; indices.len()];
    let mut lengths = Vec::new();
    for (_, store) in streams {
        store.lengths(indices, &mut lengths)?;
        totals.iter_mut().zip(&lengths).for_each(|(total, length)| *total += length);
    }
    Ok(totals)
}

fn column_type(schema: &Schema) -> Result<DataType> {
    if schema.item_shape().contains(&0) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("Parquet has no column for the shape {:?}", schema.item_shape()),
        ));
    }
    if is_binary(schema) {
        return Ok(DataType::LargeBinary);
    }
    let mut item = element_type(schema.dtype())?;
    for &side in schema.item_shape().iter().rev() {
        item = DataType::FixedSizeList(item_field(item), list_size(side)?);
    }
    Ok(match schema.kind() {
        Kind::Dense => item,
        Kind::Ragged => DataType::LargeList(item_field(item)),
    })
}

/// Ragged bytes are what texts and encoded files come from.
fn is_binary(schema: &Schema) -> bool {
    schema.kind() == Kind::Ragged && schema.dtype() == DType::U8 && schema.item_shape().is_empty()
}

fn item_field(item: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", item, false))
}

fn list_size(side: usize) -> Result<i32> {
    i32::try_from(side).map_err(|_| {
        Error::new(ErrorKind::Unsupported, format!("Parquet has no fixed-size lists of {side} elements"))
    })
}

fn element_type(dtype: DType) -> Result<DataType> {
    Ok(match dtype {
        DType::Bool => DataType::Boolean,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::BF16 => return Err(no_bf16()),
    })
}

fn no_bf16() -> Error {
    Error::new(ErrorKind::Unsupported, "Parquet has no type for bf16").with_hint("export it to npy instead")
}

/// The records at `indices` as one array.
fn column(store: &Store, schema: &Schema, indices: &[u64]) -> Result<ArrayRef> {
    let damaged = |error: arrow_schema::ArrowError| {
        Error::corrupt("the records do not have the shape of the schema")
            .at_path(store.path())
            .caused_by(error)
    };
    store.advise(indices);
    let (bytes, ends) = store.gather_packed(indices)?;
    for (&index, bounds) in indices.iter().zip(ends.windows(2)) {
        let &[start, end] = bounds else { continue };
        schema
            .check_record_bytes(end - start)
            .map_err(|error| error.at_path(store.path()).for_record(index))?;
    }
    let offsets = |unit: usize| -> Result<OffsetBuffer<i64>> {
        let unit = unit.max(1) as u64;
        let offsets = ends.iter().map(|&end| i64::try_from(end / unit)).collect::<Result<Vec<_>, _>>();
        let offsets = offsets.map_err(|_| Error::new(ErrorKind::LimitExceeded, "a batch is too large"))?;
        Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
    };
    if is_binary(schema) {
        let array = LargeBinaryArray::try_new(offsets(1)?, bytes.into(), None).map_err(damaged)?;
        return Ok(Arc::new(array));
    }
    let mut array = elements(schema.dtype(), &bytes)?;
    for &side in schema.item_shape().iter().rev() {
        let field = item_field(array.data_type().clone());
        array = Arc::new(FixedSizeListArray::try_new(field, list_size(side)?, array, None).map_err(damaged)?);
    }
    if schema.kind() == Kind::Ragged {
        let field = item_field(array.data_type().clone());
        let offsets = offsets(schema.item_bytes())?;
        array = Arc::new(LargeListArray::try_new(field, offsets, array, None).map_err(damaged)?);
    }
    Ok(array)
}

fn elements(dtype: DType, bytes: &[u8]) -> Result<ArrayRef> {
    macro_rules! primitive {
        ($type:ty, $native:ty) => {{
            let (values, _) = bytes.as_chunks::<{ size_of::<$native>() }>();
            let values: Vec<$native> = values.iter().map(|value| <$native>::from_le_bytes(*value)).collect();
            Arc::new(PrimitiveArray::<$type>::new(ScalarBuffer::from(values), None))
        }};
    }
    Ok(match dtype {
        DType::Bool => Arc::new(BooleanArray::from_iter(bytes.iter().map(|&value| Some(value != 0)))),
        DType::U8 => primitive!(UInt8Type, u8),
        DType::U16 => primitive!(UInt16Type, u16),
        DType::U32 => primitive!(UInt32Type, u32),
        DType::U64 => primitive!(UInt64Type, u64),
        DType::I8 => primitive!(Int8Type, i8),
        DType::I16 => primitive!(Int16Type, i16),
        DType::I32 => primitive!(Int32Type, i32),
        DType::I64 => primitive!(Int64Type, i64),
        DType::F16 => primitive!(Float16Type, half::f16),
        DType::F32 => primitive!(Float32Type, f32),
        DType::F64 => primitive!(Float64Type, f64),
        DType::BF16 => return Err(no_bf16()),
    })
}
