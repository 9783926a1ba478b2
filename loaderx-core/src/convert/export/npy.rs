use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use npyz::{TypeStr, WriterBuilder};

use super::ExportOptions;
use super::schema::schema_of;
use crate::convert::blocks::each_block;
use crate::convert::staging::Staging;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Kind;
use crate::store::Store;

/// Writes a dense store as the npy file `dest`, of shape `[records, *item_shape]`; returns the number of records.
///
/// `bf16`, which NumPy lacks, is written as `|V2`, as `ml_dtypes` does.
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] for a ragged store or one without a schema; [`ErrorKind::AlreadyExists`] when
/// `dest` exists; when the file cannot be written or stored bytes are damaged.
pub fn export_npy(store: &Store, dest: impl AsRef<Path>, options: &ExportOptions) -> Result<u64> {
    let schema = schema_of(store)?;
    if schema.kind() != Kind::Dense {
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!("the store holds {schema}, and an npy file has one shape"),
        )
        .at_path(store.path())
        .with_hint("export ragged records to Parquet or to plain files"));
    }
    let records = store.len();
    let element: TypeStr = schema.dtype().numpy().parse().map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("npy has no type for {}", schema.dtype())).caused_by(error)
    })?;
    let shape: Vec<u64> =
        std::iter::once(records).chain(schema.item_shape().iter().map(|&side| side as u64)).collect();
    let staging = Staging::begin(dest)?;
    let failed = |error| Error::io("write the npy file", staging.path(), error);
    let file = File::create_new(staging.path()).map_err(failed)?;
    let mut output = npyz::WriteOptions::new_header_only()
        .dtype(npyz::DType::Plain(element))
        .shape(&shape)
        .writer(BufWriter::new(file))
        .write_header_only()
        .map_err(failed)?;
    let mut meter = options.meter(records);
    each_block(store, |_, bytes, offsets| {
        output.write_all(bytes).map_err(failed)?;
        meter.advance(offsets.len().saturating_sub(1) as u64, bytes.len() as u64)
    })?;
    let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    staging.commit()?;
    Ok(records)
}
