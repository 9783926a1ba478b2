use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loaderx_core::{Error, ErrorKind, Schema, Store};
use serde_json::{Map, Value};

use super::delete::Indices;
use super::described::Described;
use crate::output::{Outcome, Output};
use crate::pictures;
use crate::target::Target;
use crate::values::{to_json, to_text};

/// Show the first records.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx head train\n  loaderx head train/image -n 3 --image")]
pub(crate) struct HeadArgs {
    /// The store or dataset.
    path: PathBuf,

    /// How many.
    #[arg(short = 'n', long, default_value_t = 5)]
    count: u64,

    #[command(flatten)]
    form: Form,
}

/// Show records by their indices, all by default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loaderx cat train 0 17 100..110
  loaderx cat train --json > train.jsonl             # one JSON value a line
  loaderx cat train/image 7 --png pictures
  loaderx cat train/text 3 --raw
  loaderx cat from-python 3 --dtype u8 --shape 28,28 --image")]
pub(crate) struct CatArgs {
    /// The store or dataset.
    path: PathBuf,

    /// Indices and ranges such as 5..9 (the end left out).
    indices: Vec<Indices>,

    #[command(flatten)]
    form: Form,
}

#[derive(Debug, clap::Args)]
struct Form {
    /// Show long records whole.
    #[arg(long)]
    full: bool,

    /// Print the records' bytes as they are, one after the other.
    #[arg(long, conflicts_with_all = ["image", "png"])]
    raw: bool,

    /// Draw records that are pictures.
    #[arg(long)]
    image: bool,

    /// Write records that are pictures as PNG files into this directory.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,

    #[command(flatten)]
    described: Described,
}

impl HeadArgs {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.path)?;
        let count = self.count.min(target.len());
        self.form.show(&self.path, &target, 0..count, output)
    }
}

impl CatArgs {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.path)?;
        for indices in &self.indices {
            indices.check(target.len(), &self.path)?;
        }
        if self.indices.is_empty() {
            return self.form.show(&self.path, &target, 0..target.len(), output);
        }
        self.form.show(&self.path, &target, self.indices.iter().flat_map(Indices::each), output)
    }
}

impl Form {
    fn show(
        &self,
        path: &Path,
        target: &Target,
        indices: impl Iterator<Item = u64>,
        output: &Output,
    ) -> Outcome {
        let schema = self.described.of_records(target, path)?;
        // No half-written picture or line.
        crate::progress::hold_interrupts();
        if let Some(directory) = &self.png {
            fs::create_dir_all(directory)
                .map_err(|error| Error::io("create the directory for pictures", directory, error))?;
        }
        for index in indices {
            if crate::progress::is_interrupted() {
                return Err(Error::new(ErrorKind::Cancelled, "stopped").into());
            }
            if self.raw {
                output.raw(&target.single(path)?.get(index)?)?;
            } else if self.image || self.png.is_some() {
                self.show_picture(target.single(path)?, schema.as_ref(), index, output)?;
            } else if output.is_json() {
                let value = json_record(target, schema.as_ref(), index)?;
                output.raw(format!("{value}\n").as_bytes())?;
            } else {
                for (name, store) in &target.streams {
                    let text = to_text(
                        &record(store, schema.as_ref(), index)?,
                        store.schema().or(schema.as_ref()),
                        self.full,
                    );
                    let name = if name.is_empty() { String::new() } else { format!(" {name}") };
                    output.line(format_args!("{index}{name}: {text}"))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show_picture(&self, store: &Store, schema: Option<&Schema>, index: u64, output: &Output) -> Outcome {
        let picture = pictures::picture(&record(store, schema, index)?, store.schema().or(schema))
            .map_err(|error| error.at_path(store.path()).for_record(index))?;
        if let Some(directory) = &self.png {
            let file = directory.join(format!("{index}.png"));
            pictures::save(&picture, &file)?;
            output.line(format_args!("{index}: {}", file.display()))?;
        }
        if self.image {
            output.line(format_args!("{index}: {} x {}", picture.height(), picture.width()))?;
            output.line(pictures::drawn(&picture))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A record's bytes, which must be what was said that they are.
fn record(store: &Store, schema: Option<&Schema>, index: u64) -> loaderx_core::Result<Vec<u8>> {
    let bytes = store.get(index)?;
    if let Some(schema) = schema {
        schema
            .check_record_bytes(bytes.len() as u64)
            .map_err(|error| error.at_path(store.path()).for_record(index))?;
    }
    Ok(bytes)
}

/// The record itself, or an object of the streams' records.
fn json_record(target: &Target, schema: Option<&Schema>, index: u64) -> loaderx_core::Result<Value> {
    let mut object = Map::new();
    for (name, store) in &target.streams {
        let value = to_json(&record(store, schema, index)?, store.schema().or(schema));
        if !target.is_dataset {
            return Ok(value);
        }
        object.insert(name.clone(), value);
    }
    Ok(Value::Object(object))
}
