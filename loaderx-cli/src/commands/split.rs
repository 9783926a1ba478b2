use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loaderx_core::convert::{Imported, Part, rewrite, rewrite_streams};
use loaderx_core::sampler::{IndexMap, Split, split};
use loaderx_core::{Error, Result};
use serde_json::json;

use super::described::{Described, part};
use super::storage::{Storage, report, to_json};
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Records are mapped to their places in blocks of this many.
const BLOCK: u64 = 1 << 12;

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
    described: Described,

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
        for (dest, half, range) in parts {
            let indices = || -> Box<dyn Iterator<Item = u64>> {
                if self.in_order { Box::new(range.clone()) } else { Box::new(Mapped::new(&half)) }
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
        let schema = self.described.of(target, &self.source)?;
        if target.is_dataset {
            let streams = target
                .streams
                .iter()
                .map(|(name, store)| (name.as_str(), vec![part(Part::at(store, indices()), schema.as_ref())]))
                .collect();
            return rewrite_streams(streams, dest, &options);
        }
        rewrite(
            vec![part(Part::at(target.single(&self.source)?, indices()), schema.as_ref())],
            dest,
            &options,
        )
    }
}

/// The indices of a part, in its order, mapped block by block.
struct Mapped {
    part: Split,
    next: u64,
    block: std::vec::IntoIter<u64>,
}

impl Mapped {
    fn new(part: &Split) -> Self {
        Self { part: part.clone(), next: 0, block: Vec::new().into_iter() }
    }
}

impl Iterator for Mapped {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(index) = self.block.next() {
            return Some(index);
        }
        let end = self.part.len().min(self.next + BLOCK);
        let mut block: Vec<u64> = (self.next..end).collect();
        self.part.map(&mut block);
        self.next = end;
        self.block = block.into_iter();
        self.block.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.part.len() - self.next).map(|left| left + self.block.len());
        (left.unwrap_or(usize::MAX), left.ok())
    }
}
