use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loaderx_core::convert::{Format, ImportOptions, Imported, import, import_streams};
use loaderx_core::{DType, Error, Result};

use super::storage::{Storage, report};
use crate::output::{Outcome, Output};

/// Bring data of another form into a new store or dataset.
///
/// Reads idx, npy, npz, safetensors, csv, tsv, jsonl, images (class folders), webdataset, arrow, parquet, and
/// plain files; the format is told from the input unless it is named. An input of one array becomes one store, one
/// of several columns a directory with a store for each, and so do several files of one array each (idx, npy): each
/// becomes a stream, called by its file unless it is given as NAME=FILE. The output appears when it is complete, and
/// an existing one is never touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loaderx import train-images-idx3-ubyte.gz train/image
  loaderx import image=train-images-idx3-ubyte.gz label=train-labels-idx1-ubyte.gz train
  loaderx import snapshot/ train --split train --codec auto   # Parquet part files
  loaderx import train.csv train --type label=u8 --fill-nulls 0
  loaderx import imagenet/ train --resize 224x224    # class folders, decoded
  loaderx import x.safetensors x --select weight --rename weight=w")]
pub(crate) struct Args {
    /// The file or directory to read; several files of one array each as FILE or NAME=FILE.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,

    /// The store or dataset to make.
    dest: PathBuf,

    /// The input's format.
    #[arg(long, default_value = "auto")]
    format: String,

    /// Import only these columns or arrays.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    select: Vec<String>,

    /// Give a column or array another name.
    #[arg(long, value_name = "NAME=NEW", value_parser = pair)]
    rename: Vec<(String, String)>,

    /// Store a numeric column of CSV, TSV or JSON lines as this type.
    #[arg(long = "type", value_name = "NAME=TYPE", value_parser = column_type)]
    types: Vec<(String, DType)>,

    /// Store missing values as this number, missing texts and lists as empty ones.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    fill_nulls: Option<f64>,

    /// Decode images and bring them to this size, RGB.
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = size)]
    resize: Option<(u32, u32)>,

    /// Import this split of a directory whose part files belong to several, such as a snapshot from the Hugging Face hub.
    #[arg(long, value_name = "NAME")]
    split: Option<String>,

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let options = self.options(output);
        let done = match self.sources.as_slice() {
            [source] if named(source).is_none() => self.import_one(source, &options)?,
            sources => self.import_several(sources, &options)?,
        };
        drop(options);
        report(&done, output)?;
        Ok(ExitCode::SUCCESS)
    }

    fn import_one(&self, source: &Path, options: &ImportOptions) -> Result<Imported> {
        let format = match self.format.as_str() {
            "auto" => Format::detect(source)?,
            name => Format::from_name(name)?,
        };
        import(source, format, &self.dest, options)
    }

    fn import_several(&self, sources: &[PathBuf], options: &ImportOptions) -> Result<Imported> {
        if self.format != "auto" {
            return Err(Error::invalid("of several files, each is recognised by itself")
                .with_hint("leave out --format, or import one file at a time"));
        }
        let files = sources
            .iter()
            .map(|source| match named(source) {
                Some((name, file)) => Ok((name.to_owned(), file.to_owned())),
                None => Ok((name_of(source)?, source.clone())),
            })
            .collect::<Result<Vec<_>>>()?;
        import_streams(&files, &self.dest, options)
    }

    fn options(&self, output: &Output) -> ImportOptions {
        let mut options = self.storage.options(output).select(self.select.iter().cloned());
        for (from, to) in &self.rename {
            options = options.rename(from, to);
        }
        for (column, dtype) in &self.types {
            options = options.column_type(column, *dtype);
        }
        if let Some(value) = self.fill_nulls {
            options = options.fill_nulls(value);
        }
        if let Some((height, width)) = self.resize {
            options = options.resize_images(height, width);
        }
        if let Some(split) = &self.split {
            options = options.split(split);
        }
        options
    }
}

/// Name and file of NAME=FILE; a file whose own name has an equals sign is a file.
fn named(source: &Path) -> Option<(&str, &Path)> {
    let (name, file) = source.to_str()?.split_once('=')?;
    (!source.exists()).then_some((name, Path::new(file)))
}

/// The stream's name where none was given: the file's up to its first dot, without the endings of MNIST's files.
fn name_of(source: &Path) -> Result<String> {
    let name = source.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.split("-idx").next().unwrap_or(stem);
    if stem.is_empty() {
        return Err(Error::invalid("the file's name gives its stream none")
            .at_path(source)
            .with_hint("write NAME=FILE"));
    }
    Ok(stem.to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .ok_or_else(|| "write NAME=NEW".to_owned())
}

fn column_type(text: &str) -> Result<(String, DType), String> {
    let (name, dtype) = text.split_once('=').ok_or("write NAME=TYPE")?;
    let dtype = DType::from_name(dtype).map_err(|error: Error| error.to_string())?;
    Ok((name.to_owned(), dtype))
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once('x').and_then(|(height, width)| height.parse().ok().zip(width.parse().ok()));
    match sides {
        Some((height, width)) if height > 0 && width > 0 => Ok((height, width)),
        _ => Err("write HEIGHTxWIDTH, such as 224x224".to_owned()),
    }
}
