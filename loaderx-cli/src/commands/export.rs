use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use loaderx_core::convert::{ExportOptions, Staging, export_files, export_npy, export_parquet};
use loaderx_core::{Error, Store};
use serde_json::json;

use super::described::Described;
use crate::bytes::grouped;
use crate::output::{Outcome, Output};
use crate::progress::Bar;
use crate::target::Target;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A NumPy array, of a dense store; a directory of them, of a dataset.
    Npy,
    /// A Parquet file with a column for each stream.
    Parquet,
    /// A file for each record; of a dataset, its streams `content` and `name`.
    Files,
}

/// Write a store or dataset as npy, Parquet or plain files.
///
/// Importing it again gives the same bytes. Plain bytes of a store without a schema become a binary column or files, or
/// an array when it is said what they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loaderx export train/image image.npy
  loaderx export train train.parquet
  loaderx export scans scans-back --format files
  loaderx export from-python digits.npy --dtype u8 --shape 28,28")]
pub(crate) struct Args {
    /// The store or dataset to read.
    source: PathBuf,

    /// The file or directory to make.
    dest: PathBuf,

    /// The format; by default that of the destination's name.
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,

    #[command(flatten)]
    described: Described,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.source)?;
        let format = self.format()?;
        let mut options = ExportOptions::new().progress(Bar::new(output));
        if let Some(schema) = self.described.of(&target, &self.source)? {
            if format == ExportFormat::Files {
                return Err(Error::invalid("files hold the records' bytes as they are")
                    .with_hint("leave out --dtype and --shape")
                    .into());
            }
            options = options.schema(schema);
        }
        let records = match format {
            ExportFormat::Npy if target.is_dataset => export_arrays(&target, &self.dest, &options)?,
            ExportFormat::Npy => export_npy(target.single(&self.source)?, &self.dest, &options)?,
            ExportFormat::Parquet => {
                let name = self.source.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                let streams: Vec<(&str, &Store)> = target
                    .streams
                    .iter()
                    .map(|(stream, store)| {
                        (if stream.is_empty() { &name } else { stream.as_str() }, store.as_ref())
                    })
                    .collect();
                export_parquet(&streams, &self.dest, &options)?
            }
            ExportFormat::Files => {
                let stream = |wanted: &str| {
                    let found = target.streams.iter().find(|(name, _)| name == wanted);
                    found.map(|(_, store)| store.as_ref())
                };
                match (stream("content"), stream("name")) {
                    (Some(content), names) => export_files(content, names, &self.dest, &options)?,
                    (None, _) => export_files(target.single(&self.source)?, None, &self.dest, &options)?,
                }
            }
        };
        drop(options);
        output.line(format_args!("{}: {} records", self.dest.display(), grouped(records)))?;
        output.value(&json!({ "path": self.dest.display().to_string(), "records": records }))?;
        Ok(ExitCode::SUCCESS)
    }

    fn format(&self) -> loaderx_core::Result<ExportFormat> {
        let extension = self.dest.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match (self.format, extension.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, Some("npy")) => Ok(ExportFormat::Npy),
            (None, Some("parquet" | "pq")) => Ok(ExportFormat::Parquet),
            (None, _) => Err(Error::invalid("the destination's name does not tell the format")
                .at_path(&self.dest)
                .with_hint("end it in .npy or .parquet, or say --format npy, parquet or files")),
        }
    }
}

/// A directory with an array for each stream.
fn export_arrays(target: &Target, dest: &PathBuf, options: &ExportOptions) -> loaderx_core::Result<u64> {
    let staging = Staging::begin(dest)?;
    std::fs::create_dir(staging.path()).map_err(|error| Error::io("create the directory", dest, error))?;
    for (name, store) in &target.streams {
        export_npy(store, staging.path().join(format!("{name}.npy")), options)?;
    }
    staging.commit()?;
    Ok(target.len())
}
