//! NumPy's npy files and npz archives.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use npyz::{NpyHeader, Order};

use super::array::Layout;
use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::sink::Sink;
use super::streams::ArrayFile;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// Imports the npy file `source` (versions 1 to 3) into a new dense store `dest`.
///
/// The first axis counts the records. Fortran order and big-endian elements are turned into what the store
/// holds; the file may be larger than memory.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`] for strings, objects, structured, complex and time types, by name;
/// [`ErrorKind::Corrupt`] when the file is not npy or not as long as its header says;
/// [`ErrorKind::InvalidArgument`] for a 0-d array; [`ErrorKind::AlreadyExists`] when there is something in `dest`.
pub fn import_npy(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let file = NpyFile::open(source.as_ref())?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(Some(file.layout.records), Some(file.layout.content_bytes()?));
    let schema = file.layout.schema().map_err(|error| error.at_path(&file.path))?;
    let mut sink = job.only_stream(schema, Some(file.layout.records))?;
    Box::new(file).copy(&mut job, &mut sink)?;
    job.finish(vec![sink])
}

/// An open file behind its header, which its length has been held against.
pub(super) struct NpyFile {
    path: PathBuf,
    input: BufReader<File>,
    layout: Layout,
    fortran: bool,
    /// Where the elements begin.
    start: u64,
}

impl NpyFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (mut input, length) = input::open(path)?;
        let (layout, fortran) = read_layout(&mut input).map_err(|error| error.at_path(path))?;
        let content_bytes = layout.content_bytes().map_err(|error| error.at_path(path))?;
        let start = input.stream_position().map_err(|error| read_error(error, path))?;
        let found = length - start.min(length);
        if found != content_bytes {
            return Err(layout.wrong_length(found).at_path(path));
        }
        Ok(Self { path: path.to_path_buf(), input, layout, fortran, start })
    }
}

impl ArrayFile for NpyFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn copy(mut self: Box<Self>, job: &mut Job<'_>, sink: &mut Sink) -> Result<()> {
        if self.fortran {
            self.layout.copy_fortran(self.input.get_mut(), self.start, &self.path, job, sink)
        } else {
            self.layout.copy(&mut self.input, &self.path, job, sink)
        }
    }
}

/// Imports the arrays of the npz archive `source` as the streams of a new dataset `dest`.
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] when the arrays' first axes differ in length; otherwise as [`import_npy`].
pub fn import_npz(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let path = source.as_ref();
    let damaged = |error: zip::result::ZipError| {
        Error::corrupt("the npz archive cannot be read").at_path(path).caused_by(error)
    };
    let (file, _) = input::open(path)?;
    let mut archive = zip::ZipArchive::new(file).map_err(damaged)?;
    let mut wanted = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(damaged)?;
        let name = String::from_utf8_lossy(member.name_raw()).into_owned();
        let Some(array) = name.strip_suffix(".npy") else { continue };
        let Some(stream) = options.stream_name(array) else { continue };
        let size = member.size();
        let mut counted = Counted { inner: &mut member, bytes: 0 };
        let (layout, fortran) = read_layout(&mut counted)
            .map_err(|error| Error::new(error.kind(), format!("array {array:?}: {}", error.message())))
            .map_err(|error| error.at_path(path))?;
        let found = size - counted.bytes.min(size);
        if found != layout.content_bytes()? {
            return Err(layout.wrong_length(found).at_path(path));
        }
        wanted.push((index, stream, layout, fortran));
    }
    let arrays: Vec<String> =
        archive.file_names().filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_owned())).collect();
    options.check_names(arrays.iter().map(String::as_str)).map_err(|error| error.at_path(path))?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    let layouts = || wanted.iter().map(|(_, _, layout, _)| layout);
    let bytes = layouts().map(Layout::content_bytes).sum::<Result<u64>>()?;
    job.meter.expect(Some(layouts().map(|layout| layout.records).sum()), Some(bytes));
    let mut sinks = Vec::new();
    for (index, stream, layout, fortran) in &wanted {
        let mut sink = job.stream(stream, layout.schema()?, Some(layout.records))?;
        let mut member = archive.by_index(*index).map_err(damaged)?;
        read_layout(&mut member).map_err(|error| error.at_path(path))?;
        if *fortran {
            copy_unpacked(&mut member, layout, path, &mut job, &mut sink)?;
        } else {
            layout.copy(&mut member, path, &mut job, &mut sink)?;
        }
        // Reading to the end is what compares the archive's checksum.
        io::copy(&mut member, &mut io::sink()).map_err(|error| read_error(error, path))?;
        sinks.push(sink);
    }
    job.finish(sinks)
}

/// Fortran order needs to read to and fro, which a compressed member cannot: unpacks it into the staging
/// directory first.
fn copy_unpacked(
    member: &mut dyn Read,
    layout: &Layout,
    path: &Path,
    job: &mut Job<'_>,
    sink: &mut Sink,
) -> Result<()> {
    let scratch = job.scratch_file();
    let failed = |error| Error::io("unpack an array", &scratch, error);
    let mut unpacked =
        File::options().read(true).write(true).create(true).truncate(true).open(&scratch).map_err(failed)?;
    io::copy(member, &mut unpacked).map_err(|error| read_error(error, path))?;
    layout.copy_fortran(&mut unpacked, 0, path, job, sink)?;
    std::fs::remove_file(&scratch).map_err(failed)
}

/// Reads the header, leaves `input` at the first element, and says whether the order is Fortran's.
fn read_layout(input: &mut dyn Read) -> Result<(Layout, bool)> {
    let header = NpyHeader::from_reader(input).map_err(|error| {
        Error::corrupt("this is not an npy file, or its header is damaged").caused_by(error)
    })?;
    let npyz::DType::Plain(element) = header.dtype() else {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the array is structured: {}", header.dtype().descr()),
        )
        .with_hint("save each field as an array of its own"));
    };
    let text = element.to_string();
    let big_endian = text.starts_with('>');
    let dtype = DType::from_numpy(&text.replacen('>', "<", 1))?;
    let mut layout = Layout::new(dtype, header.shape())?;
    layout.big_endian = big_endian;
    // With one axis both orders are the same.
    let fortran = header.order() == Order::Fortran && header.shape().len() > 1;
    Ok((layout, fortran))
}

struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}
