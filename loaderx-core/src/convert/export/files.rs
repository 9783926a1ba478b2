use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path};

use super::ExportOptions;
use crate::convert::blocks::each_block;
use crate::convert::staging::Staging;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// Writes each record's bytes as a file of the new directory `dest`; returns the number of files.
///
/// The files are named by `names`, a store of UTF-8 paths with forward slashes such as stream `name` that
/// [`import_files`](crate::convert::import_files) makes, or, without it, by the records' indices.
///
/// # Errors
///
/// When `names` has another length or holds a name that is no plain path below `dest` or comes twice, with the
/// record; [`ErrorKind::AlreadyExists`] when there is something in `dest`; when the directory cannot be written or
/// stored bytes are damaged.
pub fn export_files(
    store: &Store,
    names: Option<&Store>,
    dest: impl AsRef<Path>,
    options: &ExportOptions,
) -> Result<u64> {
    if let Some(names) = names
        && names.len() != store.len()
    {
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!("{} names do not fit {} records", names.len(), store.len()),
        )
        .at_path(names.path()));
    }
    let staging = Staging::begin(dest)?;
    let root = staging.path().to_path_buf();
    fs::create_dir(&root).map_err(|error| Error::io("create the directory", &root, error))?;
    let mut meter = options.meter(store.len());
    // As many digits as the last index has, so that the names sort as the records do.
    let digits = store.len().saturating_sub(1).to_string().len();
    each_block(store, |first, bytes, offsets| {
        for (index, bounds) in (first..).zip(offsets.windows(2)) {
            let &[start, end] = bounds else { continue };
            let record = bytes.get(start..end).unwrap_or_default();
            let name = match names {
                Some(names) => name_of(names, index)?,
                None => format!("{index:0digits$}.bin"),
            };
            let path = root.join(&name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| Error::io("create a directory", parent, error))?;
            }
            File::create_new(&path)
                .and_then(|mut file| file.write_all(record))
                .map_err(|error| Error::io("write a record's file", &path, error).for_record(index))?;
            // Each file takes longer than saying so.
            meter.advance(1, record.len() as u64)?;
        }
        Ok(())
    })?;
    staging.commit()?;
    Ok(store.len())
}

fn name_of(names: &Store, index: u64) -> Result<String> {
    let refuse = |what: String| Error::invalid(what).at_path(names.path()).for_record(index);
    let name =
        String::from_utf8(names.get(index)?).map_err(|_| refuse("a name is not valid UTF-8".to_owned()))?;
    let plain = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !plain {
        return Err(refuse(format!("{name:?} is no plain path below the destination")));
    }
    Ok(name)
}
