//! What the importers share about reading their input.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Opens `path` for buffered reading and gives its length.
pub(super) fn open(path: &Path) -> Result<(BufReader<File>, u64)> {
    let file = File::open(path).map_err(|error| read_error(error, path))?;
    let metadata = file.metadata().map_err(|error| read_error(error, path))?;
    if metadata.is_dir() {
        return Err(Error::invalid("the input is a directory, not a file").at_path(path));
    }
    Ok((BufReader::with_capacity(1 << 16, file), metadata.len()))
}

/// Turns a gzip file into its content; told apart by content, not by name. Gives the reader and whether it was
/// compressed.
pub(super) fn unzipped(mut file: BufReader<File>, path: &Path) -> Result<(Box<dyn Read>, bool)> {
    let gzip = file.fill_buf().map_err(|error| read_error(error, path))?.starts_with(&[0x1f, 0x8b]);
    if gzip { Ok((unzip(file, path)?, true)) } else { Ok((Box::new(file), false)) }
}

#[cfg(feature = "gzip")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is an error to return")]
fn unzip(file: BufReader<File>, _path: &Path) -> Result<Box<dyn Read>> {
    Ok(Box::new(flate2::bufread::MultiGzDecoder::new(file)))
}

#[cfg(not(feature = "gzip"))]
fn unzip(_file: BufReader<File>, path: &Path) -> Result<Box<dyn Read>> {
    let message = "the file is compressed with gzip, which this build leaves out";
    Err(Error::new(crate::error::ErrorKind::Unsupported, message)
        .at_path(path)
        .with_hint("enable the feature `gzip`, or decompress the file first"))
}

/// An error of reading the input; a compressed file that ends early or is damaged shows as one.
pub(super) fn read_error(error: io::Error, path: &Path) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::corrupt("the input is cut short").at_path(path).with_hint("fetch the file again")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::corrupt("the input is damaged").at_path(path).caused_by(error)
        }
        _ => Error::io("read the input", path, error),
    }
}

/// The files below `dir`, hidden ones left out, sorted by path so that every machine imports the same order.
pub(super) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |error| Error::io("list the directory", &folder, error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // Follows links to files, but not to directories, which could lead around in circles.
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The path of `file` below `root` with forward slashes, as text.
pub(super) fn relative_name(root: &Path, file: &Path) -> Result<String> {
    let parts = file.strip_prefix(root).unwrap_or(file).iter().map(|part| part.to_str());
    match parts.collect::<Option<Vec<_>>>() {
        Some(parts) => Ok(parts.join("/")),
        None => Err(Error::invalid("the file's name is not valid UTF-8").at_path(file)),
    }
}
