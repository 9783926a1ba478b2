//! WebDataset: tar archives in which neighbouring files of one key are a sample.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::parts::part_files;
use super::sink::Sink;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// The stream of the samples' keys.
const KEY: &str = "key";

/// Imports a WebDataset, a tar archive or a directory of them (plain or gzip), into a new dataset `dest`.
///
/// A file's key is its path up to the first dot of its name, and what follows the dot is the stream that it belongs
/// to, so `00/17.seg.png` is in stream `seg.png` of sample `00/17`. Each stream is ragged `u8`; stream `key` holds
/// the keys. Every sample must have the same streams, unless missing ones may be filled, with empty records.
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] when a sample lacks a stream of the first one or brings a new one, or one twice,
/// with key and archive; [`ErrorKind::Corrupt`] when an archive is damaged or cut short;
/// [`ErrorKind::AlreadyExists`] when there is something in `dest`.
pub fn import_webdataset(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let parts = part_files(source.as_ref(), &[".tar", ".tar.gz", ".tgz"], options)?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    let mut samples = Samples { options, sinks: Vec::new(), keys: None, current: None };
    for part in &parts {
        let (file, _) = input::open(part)?;
        let (input, _) = input::unzipped(file, part)?;
        read_archive(input, part, &mut samples, &mut job)?;
        // A sample never spans archives.
        samples.end(part, &mut job)?;
    }
    let sinks = samples.keys.into_iter().chain(samples.sinks.into_iter().map(|(_, sink)| sink)).collect();
    job.finish(sinks)
}

fn read_archive(
    input: Box<dyn Read>,
    part: &Path,
    samples: &mut Samples<'_>,
    job: &mut Job<'_>,
) -> Result<()> {
    let damaged = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::Other => {
            Error::corrupt("the archive is damaged or cut short").at_path(part).caused_by(error)
        }
        _ => read_error(error, part),
    };
    let mut archive = tar::Archive::new(input);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| Error::invalid("a file's name in the archive is not valid UTF-8").at_path(part))?;
        let Some((key, stream)) = split(&path) else { continue };
        let mut bytes = Vec::new();
        let size = entry.size();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size {
            return Err(Error::corrupt(format!(
                "the archive is cut short: {path:?} has {size} bytes, found {}",
                bytes.len()
            ))
            .at_path(part));
        }
        samples.add(key, stream, bytes, part, job)?;
    }
    Ok(())
}

/// Key and stream of a path; `None` for files without an extension and hidden ones.
fn split(path: &str) -> Option<(&str, &str)> {
    let name_start = path.rfind('/').map_or(0, |slash| slash + 1);
    let name = path.get(name_start..)?;
    let dot = name.find('.').filter(|&dot| dot > 0)?;
    let stream = name.get(dot + 1..).filter(|stream| !stream.is_empty())?;
    Some((path.get(..name_start + dot)?, stream))
}

struct Samples<'a> {
    options: &'a ImportOptions,
    /// By the streams' names in the archive.
    sinks: Vec<(String, Sink)>,
    keys: Option<Sink>,
    /// The sample whose files are being read.
    current: Option<(String, BTreeMap<String, Vec<u8>>)>,
}

impl Samples<'_> {
    fn add(&mut self, key: &str, stream: &str, bytes: Vec<u8>, part: &Path, job: &mut Job<'_>) -> Result<()> {
        if self.current.as_ref().is_some_and(|(current, _)| current != key) {
            self.end(part, job)?;
        }
        let (_, files) = self.current.get_or_insert_with(|| (key.to_owned(), BTreeMap::new()));
        if self.options.stream_name(stream).is_none() {
            return Ok(());
        }
        if files.insert(stream.to_owned(), bytes).is_some() {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!("sample {key:?} has two files for stream {stream:?}"),
            )
            .at_path(part));
        }
        Ok(())
    }

    /// Writes the sample that has been read.
    fn end(&mut self, part: &Path, job: &mut Job<'_>) -> Result<()> {
        let Some((key, mut files)) = self.current.take() else { return Ok(()) };
        let mismatch = |what: String| {
            Err(Error::new(ErrorKind::SchemaMismatch, format!("sample {key:?} {what}"))
                .at_path(part)
                .with_hint("select the streams that every sample has, or have missing ones filled"))
        };
        let keys = match &mut self.keys {
            Some(keys) => keys,
            none => {
                self.options
                    .check_names(files.keys().map(String::as_str))
                    .map_err(|error| error.at_path(part))?;
                let schema = Schema::ragged(DType::U8, &[])?;
                for stream in files.keys() {
                    let name = self.options.stream_name(stream).unwrap_or_else(|| stream.clone());
                    self.sinks.push((stream.clone(), job.stream(&name, schema.clone(), None)?));
                }
                none.insert(job.stream(KEY, schema, None)?)
            }
        };
        let mut bytes = 0;
        for (stream, sink) in &mut self.sinks {
            match files.remove(stream) {
                Some(content) => {
                    bytes += content.len() as u64;
                    sink.push(&content).map_err(|error| error.at_path(part))?;
                }
                None if self.options.fill.is_some() => sink.push(&[])?,
                None => return mismatch(format!("has no file for stream {stream:?}")),
            }
        }
        if let Some(stream) = files.keys().next() {
            return mismatch(format!("has a file for stream {stream:?}, which the first sample lacks"));
        }
        keys.push(key.as_bytes())?;
        job.meter.advance(1, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_ends_at_the_first_dot_of_the_name() {
        assert_eq!(split("a.b/17.seg.png"), Some(("a.b/17", "seg.png")));
        assert_eq!(split("17.jpg"), Some(("17", "jpg")));
        for none in ["17", "a.b/17", ".hidden", "17.", "a/.x.y"] {
            assert_eq!(split(none), None, "{none}");
        }
    }
}
