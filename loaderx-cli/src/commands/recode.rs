use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::convert::{Part, rewrite, rewrite_streams};

use super::described::{Described, part};
use super::storage::{Storage, report};
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Write a store or dataset anew with another codec, level or format version, or with a schema.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx recode train train-small --codec auto\n  \
                        loaderx recode train/text text --codec zstd --level 19\n  \
                        loaderx recode from-python digits --dtype u8 --shape 28,28")]
pub(crate) struct Args {
    /// The store or dataset to read.
    source: PathBuf,

    /// The store or dataset to make.
    dest: PathBuf,

    #[command(flatten)]
    described: Described,

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.source)?;
        let schema = self.described.of(&target, &self.source)?;
        let options = self.storage.options(output);
        let done = if target.is_dataset {
            let streams = target
                .streams
                .iter()
                .map(|(name, store)| (name.as_str(), vec![part(Part::all(store), schema.as_ref())]))
                .collect();
            rewrite_streams(streams, &self.dest, &options)?
        } else {
            rewrite(
                vec![part(Part::all(target.single(&self.source)?), schema.as_ref())],
                &self.dest,
                &options,
            )?
        };
        drop(options);
        report(&done, output)?;
        Ok(ExitCode::SUCCESS)
    }
}
