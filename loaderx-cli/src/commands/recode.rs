use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::convert::{Part, rewrite, rewrite_streams};

use super::storage::{Storage, report};
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Write a store or dataset anew with another codec, level or format version.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx recode train train-small --codec auto\n  \
                        loaderx recode train/text text --codec zstd --level 19")]
pub(crate) struct Args {
    /// The store or dataset to read.
    source: PathBuf,

    /// The store or dataset to make.
    dest: PathBuf,

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.source)?;
        let options = self.storage.options(output);
        let done = if target.is_dataset {
            let streams =
                target.streams.iter().map(|(name, store)| (name.as_str(), vec![Part::all(store)])).collect();
            rewrite_streams(streams, &self.dest, &options)?
        } else {
            rewrite(vec![Part::all(target.single(&self.source)?)], &self.dest, &options)?
        };
        drop(options);
        report(&done, output)?;
        Ok(ExitCode::SUCCESS)
    }
}
