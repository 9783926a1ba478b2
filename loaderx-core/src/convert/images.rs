//! Folders of images, a folder for each class.

use std::fs;
use std::path::{Path, PathBuf};

use image::ImageReader;
use image::imageops::FilterType;

use super::input::{files_below, relative_name};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// Imports the images in the class folders of `source` into a new dataset `dest`.
///
/// Stream `image` holds the files as they are, as ragged `u8`; with
/// [`ImportOptions::resize_images`] it holds pixels, dense `u8` of shape `[height, width, 3]`. Stream `label` holds
/// the number of the image's class, a scalar `u32`: the folders directly below `source`, sorted by name, counted
/// from 0. Their names are kept beside the streams in `classes.json`. Hidden files are left out.
///
/// # Errors
///
/// When a file lies in no class folder or is no image that can be read, by its name; when there are none;
/// [`ErrorKind::AlreadyExists`] when there is something in `dest`.
pub fn import_images(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let root = source.as_ref();
    let files = labelled(root)?;
    let mut classes: Vec<&str> = files.iter().map(|(class, _)| class.as_str()).collect();
    classes.dedup();
    let mut job = Job::begin(dest.as_ref(), options)?;
    let records = Some(files.len() as u64);
    job.meter.expect(records, None);
    let schema = match options.resize {
        Some((height, width)) => Schema::dense(DType::U8, &[height as usize, width as usize, 3])?,
        None => Schema::ragged(DType::U8, &[])?,
    };
    let mut images = job.stream("image", schema, records)?;
    let mut labels = job.stream("label", Schema::dense(DType::U32, &[])?, records)?;
    if let Some((height, width)) = options.resize {
        images.note(format!("decoded to RGB and resized to {height} x {width} (triangle filter)"));
    }
    for (class, file) in &files {
        let bytes = fs::read(file).map_err(|error| Error::io("read the image", file, error))?;
        match options.resize {
            Some((height, width)) => images.push(&decode(&bytes, file, height, width)?)?,
            None => {
                check_header(&bytes, file)?;
                images.push(&bytes).map_err(|error| error.at_path(file))?;
            }
        }
        let label = classes.binary_search(&class.as_str()).ok().and_then(|label| u32::try_from(label).ok());
        let label = label.ok_or_else(|| Error::invalid("there are more classes than labels"))?;
        labels.push(&label.to_le_bytes())?;
        job.meter.advance(1, bytes.len() as u64)?;
    }
    let names = serde_json::to_vec_pretty(&classes)
        .map_err(|error| Error::invalid("the classes' names cannot be written").caused_by(error))?;
    job.write_beside("classes.json", &names)?;
    job.finish(vec![images, labels])
}

/// The files with their class folders, sorted by both.
fn labelled(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for file in files_below(root)? {
        let name = relative_name(root, &file)?;
        let Some((class, _)) = name.split_once('/') else {
            return Err(Error::invalid("the image lies in no class folder")
                .at_path(&file)
                .with_hint("put the images of each class into a folder of its own, or import plain files"));
        };
        files.push((class.to_owned(), file));
    }
    if files.is_empty() {
        return Err(Error::invalid("the directory holds no images").at_path(root));
    }
    // By class first: as plain paths, "a-b/x" would come before "a/x".
    files.sort();
    Ok(files)
}

/// Reads the image's format and size, which tells a foreign file without decoding every pixel.
fn check_header(bytes: &[u8], file: &Path) -> Result<()> {
    reader(bytes, file)?.into_dimensions().map(drop).map_err(|error| unreadable(error, file))
}

fn decode(bytes: &[u8], file: &Path, height: u32, width: u32) -> Result<Vec<u8>> {
    let image = reader(bytes, file)?.decode().map_err(|error| unreadable(error, file))?;
    Ok(image.resize_exact(width, height, FilterType::Triangle).into_rgb8().into_raw())
}

fn reader<'a>(bytes: &'a [u8], file: &Path) -> Result<ImageReader<std::io::Cursor<&'a [u8]>>> {
    ImageReader::new(std::io::Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| Error::io("read the image", file, error))
}

fn unreadable(error: image::ImageError, file: &Path) -> Error {
    let kind = match error {
        image::ImageError::Unsupported(_) => ErrorKind::Unsupported,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, "the file is no image that can be read").at_path(file).caused_by(error)
}
