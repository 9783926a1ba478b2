use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loaderx_core::convert::{Imported, Part, rewrite, rewrite_streams};
use loaderx_core::sampler::{IndexMap, Split, split};
use loaderx_core::{Error, Result};
use serde_json::json;

use super::storage::{Storage, report, to_json};
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Records are mapped to their places in blocks of this many.
const BLOCK: usize = 1 << 12;

/// Divide a store or dataset into two new ones, at random or in order.
///
/// The random division is a pure function of the number of records and the seed, the same on every machine. (A loader
/// can split without copying anything: see `sampler::split`.)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loaderx split all train valid --fraction 0.9 --seed 42
  loaderx split all head tail --fraction 0.5 --in-order")]
pub(crate) struct Args {
    /// The store or dataset to read.
    source: PathBuf,

    /// The first part.
    first: PathBuf,

    /// The rest.
    second: PathBuf,

    /// The share of the records that goes into the first part.
    #[arg(long, default_value_t = 0.9)]
    fraction: f64,

    /// What the random division depends on.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Divide in the order of the records instead of at random.
    #[arg(long, conflicts_with = "seed")]
    in_order: bool,

    #[command(flatten)]
    storage: Storage,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.source)?;
        if !(self.fraction > 0.0 && self.fraction < 1.0) {
            return Err(
                Error::invalid(format!("the fraction {} is not between 0 and 1", self.fraction)).into()
            );
        }
        let [first, second] = split(target.len(), [self.fraction, 1.0 - self.fraction], self.seed)?;
        let middle = first.len();
        // The rest is everything that the first part leaves, also where the fractions do not add up to 1 exactly.
        if first.len() + second.len() != target.len() {
            return Err(Error::invalid(format!("the fraction {} cannot be met exactly", self.fraction))
                .with_hint("use one with fewer digits")
                .into());
        }
        let parts = [(&self.first, first, 0..middle), (&self.second, second, middle..target.len())];
        let mut made: Vec<Imported> = Vec::new();
        for (dest, part, range) in parts {
            let indices = || -> Box<dyn Iterator<Item = u64>> {
                if self.in_order { Box::new(range.clone()) } else { Box::new(mapped(&part)) }
            };
            made.push(self.write(&target, dest, &indices, output)?);
        }
        for done in &made {
            if !output.is_json() {
                report(done, output)?;
            }
        }
        output.value(&json!(made.iter().map(to_json).collect::<Vec<_>>()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn write(
        &self,
        target: &Target,
        dest: &Path,
        indices: &dyn Fn() -> Box<dyn Iterator<Item = u64>>,
        output: &Output,
    ) -> Result<Imported> {
        let options = self.storage.options(output);
        if target.is_dataset {
            let streams = target
                .streams
                .iter()
                .map(|(name, store)| (name.as_str(), vec![Part::at(store, indices())]))
                .collect();
            return rewrite_streams(streams, dest, &options);
        }
        rewrite(vec![Part::at(target.single(&self.source)?, indices())], dest, &options)
    }
}

/// The indices of a part, in its order.
fn mapped(part: &Split) -> impl Iterator<Item = u64> + use<> {
    let part = part.clone();
    (0..part.len()).step_by(BLOCK).flat_map(move |start| {
        let mut block: Vec<u64> = (start..part.len().min(start + BLOCK as u64)).collect();
        part.map(&mut block);
        block
    })
}
