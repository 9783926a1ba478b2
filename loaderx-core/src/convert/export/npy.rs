use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use npyz::{TypeStr, WriterBuilder};

use super::ExportOptions;
use crate::convert::blocks::each_block;
use crate::convert::described::described;
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
/// [`ErrorKind::SchemaMismatch`] for a ragged store, for one without a schema when [`ExportOptions::schema`] gives none
/// either, and for a record that is not what the schema says; [`ErrorKind::AlreadyExists`] when `dest` exists; when the
/// file cannot be written or stored bytes are damaged.
pub fn export_npy(store: &Store, dest: impl AsRef<Path>, options: &ExportOptions) -> Result<u64> {
    let Some(schema) = described(store, options.schema.as_ref())? else {
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            "the store has no schema, its records are plain bytes",
        )
        .at_path(store.path())
        .with_hint(
            "say of which element type and shape they are (--dtype and --shape on the command line), or export them as Parquet or plain files",
        ));
    };
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
    each_block(store, |first, bytes, offsets| {
        for (index, bounds) in (first..).zip(offsets.windows(2)) {
            let &[start, end] = bounds else { continue };
            schema
                .check_record_bytes((end - start) as u64)
                .map_err(|error| error.at_path(store.path()).for_record(index))?;
        }
        output.write_all(bytes).map_err(failed)?;
        meter.advance(offsets.len().saturating_sub(1) as u64, bytes.len() as u64)
    })?;
    let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    staging.commit()?;
    Ok(records)
}
