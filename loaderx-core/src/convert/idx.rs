//! IDX, the format of MNIST: a big-endian header of type and sides, then the elements in C order.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::array::Layout;
use super::input::{self, read_error};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::sink::Sink;
use super::streams::ArrayFile;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Sides beyond this are no IDX file that anybody has written, but a foreign one.
const MAX_SIDES: u8 = 8;

/// What the header of an IDX file says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdxHeader {
    /// The type of each element.
    pub dtype: DType,
    /// Records: the first side.
    pub records: u64,
    /// The shape of one record: the other sides; empty for scalars, such as labels.
    pub item_shape: Vec<usize>,
}

impl IdxHeader {
    /// Reads the header of the IDX file `path`, plain or gzip.
    ///
    /// # Errors
    ///
    /// As [`import_idx`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Ok(IdxFile::open(path.as_ref())?.header)
    }
}

/// Imports the IDX file `source`, plain or gzip (told apart by content), into a new dense store `dest`.
///
/// The first side counts the records, the others are the shape of one. Elements are turned from big-endian to
/// little-endian. Several files become the streams of one dataset by [`import_streams`](super::import_streams).
///
/// ```no_run
/// use loaderx_core::convert::{ImportOptions, import_idx};
///
/// let done = import_idx("train-images-idx3-ubyte.gz", "train/image", &ImportOptions::new())?;
/// println!("{} records in {}", done.records, done.path.display());
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) without such a file; [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when it is not IDX, is cut short or goes
/// on after its last record, with the numbers; [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists) when there is something in `dest`;
/// when the store cannot be written. Nothing is left behind in any of these cases.
pub fn import_idx(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let file = IdxFile::open(source.as_ref())?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(Some(file.header.records), Some(file.content_bytes));
    let schema = file.layout.schema().map_err(|error| error.at_path(&file.path))?;
    let mut sink = job.only_stream(schema, Some(file.header.records))?;
    Box::new(file).copy(&mut job, &mut sink)?;
    job.finish(vec![sink])
}

/// An open file behind its validated header.
pub(super) struct IdxFile {
    path: PathBuf,
    input: Box<dyn Read>,
    header: IdxHeader,
    layout: Layout,
    content_bytes: u64,
}

impl IdxFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, length) = input::open(path)?;
        let (mut input, gzip) = input::unzipped(file, path)?;
        let (header, header_bytes) = read_header(&mut input)
            .map_err(|error| read_error(error, path))?
            .map_err(|error| error.at_path(path))?;
        let layout = Layout {
            dtype: header.dtype,
            big_endian: true,
            records: header.records,
            item_shape: header.item_shape.clone(),
        };
        let content_bytes = layout.content_bytes().map_err(|error| error.at_path(path))?;
        let found = length - header_bytes.min(length);
        if !gzip && found != content_bytes {
            return Err(layout.wrong_length(found).at_path(path));
        }
        Ok(Self { path: path.to_path_buf(), input, header, layout, content_bytes })
    }
}

impl ArrayFile for IdxFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn copy(mut self: Box<Self>, job: &mut Job<'_>, sink: &mut Sink) -> Result<()> {
        self.layout.copy(&mut self.input, &self.path, job, sink)?;
        let mut extra = [0];
        match self.input.read(&mut extra) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.layout.wrong_length(self.content_bytes + 1).at_path(&self.path)),
            Err(error) => Err(read_error(error, &self.path)),
        }
    }
}

/// Reads the header; the outer error is the input's, the inner one the content's.
fn read_header(input: &mut impl Read) -> io::Result<Result<(IdxHeader, u64)>> {
    let mut magic = [0; 4];
    let got = read_up_to(input, &mut magic)?;
    if got < magic.len() {
        return Ok(Err(foreign(format!("it has only {got} bytes"))));
    }
    let (dtype, sides) = match read_magic(magic) {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let mut shape = Vec::new();
    for side in 0..sides {
        let mut bytes = [0; 4];
        if read_up_to(input, &mut bytes)? < bytes.len() {
            return Ok(Err(Error::corrupt(format!(
                "the file ends within its header, in dimension {} of {sides}",
                side + 1
            ))));
        }
        shape.push(u32::from_be_bytes(bytes));
    }
    let header_bytes = 4 + 4 * u64::from(sides);
    let mut sides = shape.into_iter();
    let records = sides.next().map_or(0, u64::from);
    // 64-bit machines only: every side fits.
    let item_shape = sides.map(|side| side as usize).collect();
    Ok(Ok((IdxHeader { dtype, records, item_shape }, header_bytes)))
}

/// The element type and the number of sides, from the first four bytes.
fn read_magic(magic: [u8; 4]) -> Result<(DType, u8)> {
    let [zero0, zero1, code, sides] = magic;
    if (zero0, zero1) != (0, 0) {
        return Err(foreign(format!("it starts with the bytes {magic:02x?}, not with two zeros")));
    }
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        _ => {
            return Err(foreign(format!(
                "its type code is 0x{code:02x}, known are 0x08, 0x09 and 0x0b to 0x0e"
            )));
        }
    };
    if !(1..=MAX_SIDES).contains(&sides) {
        return Err(foreign(format!("it would have {sides} dimensions, possible are 1 to {MAX_SIDES}")));
    }
    Ok((dtype, sides))
}

/// Whether the file, plain or gzip, starts as an IDX file does.
pub(super) fn starts_as_idx(path: &Path) -> bool {
    let mut magic = [0; 4];
    let input = input::open(path).and_then(|(file, _)| input::unzipped(file, path));
    input.is_ok_and(|(mut input, _)| input.read_exact(&mut magic).is_ok() && read_magic(magic).is_ok())
}

fn foreign(reason: String) -> Error {
    Error::corrupt(format!("this is not an IDX file: {reason}"))
        .with_hint("an IDX file starts with 00 00, a type code and the number of dimensions")
}

/// Fills as much of `bytes` as there is; less only at the end of the input.
fn read_up_to(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = Vec::with_capacity(bytes.len());
    input.by_ref().take(bytes.len() as u64).read_to_end(&mut filled)?;
    if let Some(start) = bytes.get_mut(..filled.len()) {
        start.copy_from_slice(&filled);
    }
    Ok(filled.len())
}
