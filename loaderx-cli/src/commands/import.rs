use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::convert::{Format, import};
use loaderx_core::{DType, Error};

use super::storage::{Storage, report};
use crate::output::{Outcome, Output};

/// Bring data of another form into a new store or dataset.
///
/// Reads idx, npy, npz, safetensors, csv, tsv, jsonl, images (class folders), webdataset, arrow, parquet, and
/// plain files; the format is told from the input unless it is named. An input of one array becomes one store, one
/// of several columns a directory with a store for each. The output appears when it is complete, and an existing one
/// is never touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loaderx import train-images-idx3-ubyte.gz train/image
  loaderx import data/ train --codec auto            # Parquet part files
  loaderx import train.csv train --type label=u8 --fill-nulls 0
  loaderx import imagenet/ train --resize 224x224    # class folders, decoded
  loaderx import x.safetensors x --select weight --rename weight=w")]
pub(crate) struct Args {
    /// The file or directory to read.
    source: PathBuf,

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

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let format = match self.format.as_str() {
            "auto" => Format::detect(&self.source)?,
            name => Format::from_name(name)?,
        };
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
        let done = import(&self.source, format, &self.dest, &options)?;
        drop(options);
        report(&done, output)?;
        Ok(ExitCode::SUCCESS)
    }
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
