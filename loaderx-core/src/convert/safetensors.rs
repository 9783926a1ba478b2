//! Safetensors files: each tensor a stream, its first axis counting the records.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::array::Layout;
use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// The library refuses longer headers too.
const MAX_HEADER: u64 = 100_000_000;

/// Imports the tensors of the safetensors file `source` as the streams of a new dataset `dest`.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`] for an element type that stores do not have (8 bits and fewer of floating point,
/// complex); [`ErrorKind::SchemaMismatch`] when the tensors' first axes differ in length;
/// [`ErrorKind::Corrupt`] when the file is not safetensors or cut short; [`ErrorKind::AlreadyExists`] when there
/// is something in `dest`.
pub fn import_safetensors(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let path = source.as_ref();
    let (mut file, length) = input::open(path)?;
    let damaged = |error: serde_json::Error| {
        Error::corrupt("this is not a safetensors file, or its header is damaged")
            .at_path(path)
            .caused_by(error)
    };
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head).map_err(|error| read_error(error, path))?;
    let header_length = <[u8; 8]>::try_from(head.as_slice()).map(u64::from_le_bytes).unwrap_or(u64::MAX);
    if header_length > MAX_HEADER.min(length) {
        return Err(Error::corrupt(format!(
            "this is not a safetensors file: its header would be {header_length} of {length} bytes"
        ))
        .at_path(path));
    }
    file.by_ref().take(header_length).read_to_end(&mut head).map_err(|error| read_error(error, path))?;
    let header = head.get(8..).unwrap_or_default();
    // The library's own entry point wants the whole file in memory; its checks are all in this type.
    let metadata: Metadata = serde_json::from_slice(header).map_err(damaged)?;
    let data_start = 8 + header_length;
    let data_length = metadata.data_len() as u64;
    if data_start + data_length != length {
        return Err(Error::corrupt(format!(
            "the header promises {data_length} bytes of tensors, found {}",
            length - data_start.min(length)
        ))
        .at_path(path)
        .with_hint("fetch the file again"));
    }
    let names = metadata.offset_keys();
    options.check_names(names.iter().map(String::as_str)).map_err(|error| error.at_path(path))?;
    let mut tensors = Vec::new();
    for name in names {
        let (Some(info), Some(stream)) = (metadata.info(&name), options.stream_name(&name)) else { continue };
        let layout = layout_of(info)
            .map_err(|error| Error::new(error.kind(), format!("tensor {name:?}: {}", error.message())))
            .map_err(|error| error.at_path(path))?;
        tensors.push((stream, layout, data_start + info.data_offsets.0 as u64));
    }
    let mut job = Job::begin(dest.as_ref(), options)?;
    let bytes = tensors.iter().map(|(_, layout, _)| layout.content_bytes()).sum::<Result<u64>>()?;
    let records = tensors.iter().map(|(_, layout, _)| layout.records).sum();
    job.meter.expect(Some(records), Some(bytes));
    let mut sinks = Vec::new();
    for (stream, layout, start) in tensors {
        let mut sink = job.stream(&stream, layout.schema()?, Some(layout.records))?;
        file.seek(SeekFrom::Start(start)).map_err(|error| read_error(error, path))?;
        layout.copy(&mut file, path, &mut job, &mut sink)?;
        sinks.push(sink);
    }
    job.finish(sinks)
}

fn layout_of(info: &TensorInfo) -> Result<Layout> {
    let dtype = match info.dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("its element type {other:?} is none that a store has"),
            ));
        }
    };
    let shape: Vec<u64> = info.shape.iter().map(|&side| side as u64).collect();
    Layout::new(dtype, &shape)
}
