use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::convert::{Part, rewrite, rewrite_streams};
use loaderx_core::{Error, ErrorKind, Result, Store};

use super::described::{Described, part};
use super::storage::{Storage, report};
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Write several stores or datasets, one after the other, into a new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loaderx merge part-1 part-2 part-3 --output whole")]
pub(crate) struct Args {
    /// What to merge: stores of one schema, or datasets of the same streams.
    #[arg(required = true)]
    sources: Vec<PathBuf>,

    /// The store or dataset to make.
    #[arg(long, short)]
    output: PathBuf,

    #[command(flatten)]
    described: Described,

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let targets = self.sources.iter().map(|path| Target::open(path)).collect::<Result<Vec<_>>>()?;
        let options = self.storage.options(output);
        let Some(first) = targets.first() else { return Ok(ExitCode::SUCCESS) };
        let names: Vec<&str> = first.streams.iter().map(|(name, _)| name.as_str()).collect();
        for (path, target) in self.sources.iter().zip(&targets) {
            let own: Vec<&str> = target.streams.iter().map(|(name, _)| name.as_str()).collect();
            if own != names {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!(
                        "this is {}, the first one {}; what is merged has the same streams",
                        described(&own),
                        described(&names)
                    ),
                )
                .at_path(path)
                .into());
            }
        }
        let schema = self.described.of(first, self.sources.first().unwrap_or(&self.output))?;
        let parts = |stream: usize| {
            let stores = targets.iter().filter_map(|target| target.streams.get(stream));
            stores
                .map(|(_, store)| part(Part::all(AsRef::<Store>::as_ref(store)), schema.as_ref()))
                .collect::<Vec<_>>()
        };
        let done = if first.is_dataset {
            let streams = names.iter().enumerate().map(|(stream, name)| (*name, parts(stream))).collect();
            rewrite_streams(streams, &self.output, &options)?
        } else {
            rewrite(parts(0), &self.output, &options)?
        };
        drop(options);
        report(&done, output)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What has these streams; a single store's one has no name.
fn described(names: &[&str]) -> String {
    match names {
        [""] => "a single store".to_owned(),
        names => format!("a dataset of {}", names.join(", ")),
    }
}
