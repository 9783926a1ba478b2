use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use loaderx_core::{Error, ErrorKind, Result};
use serde_json::json;

use crate::bytes::grouped;
use crate::output::{Outcome, Output};
use crate::target::{Target, open_writable, store_paths};

/// Remove records by their indices; the last records take their places.
///
/// In a dataset the same records are removed from every stream. Their bytes stay on disk until `loaderx compact`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx delete train 17\n  loaderx delete train 5..9 100")]
pub(crate) struct Args {
    /// The store or dataset.
    path: PathBuf,

    /// Indices and ranges such as 5..9 (the end left out).
    #[arg(required = true)]
    indices: Vec<Indices>,
}

/// One index or a range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Indices {
    start: u64,
    end: u64,
}

impl Indices {
    pub(crate) fn each(&self) -> std::ops::Range<u64> {
        self.start..self.end
    }

    /// Refuses indices that the target does not have.
    pub(crate) fn check(&self, records: u64, path: &Path) -> Result<()> {
        if self.end <= records {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::OutOfRange,
            format!("there is no record {}: the store has {records}, counted from 0", self.end - 1),
        )
        .at_path(path))
    }
}

impl FromStr for Indices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither an index nor a range such as 5..9");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (start, end) = match text.split_once("..") {
            Some((start, end)) => (number(start)?, number(end)?),
            None => {
                let index = number(text)?;
                (index, index.checked_add(1).ok_or_else(wrong)?)
            }
        };
        if start >= end {
            return Err(format!("the range {text:?} is empty"));
        }
        Ok(Self { start, end })
    }
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        // Opened together first: unequal streams are refused before anything is removed.
        let records = Target::open(&self.path)?.len();
        for indices in &self.indices {
            indices.check(records, &self.path)?;
        }
        let mut indices: Vec<u64> = self.indices.iter().flat_map(Indices::each).collect();
        indices.sort_unstable();
        indices.dedup();
        let mut stores =
            store_paths(&self.path)?.iter().map(|path| open_writable(path)).collect::<Result<Vec<_>>>()?;
        for store in &mut stores {
            store.delete(&indices)?;
        }
        let left = records - indices.len() as u64;
        output.line(format_args!(
            "removed {} records, {} are left",
            grouped(indices.len() as u64),
            grouped(left)
        ))?;
        output.value(&json!({ "removed": indices.len(), "records": left }))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_ranges_are_read() {
        assert_eq!("7".parse(), Ok(Indices { start: 7, end: 8 }));
        assert_eq!("5..9".parse(), Ok(Indices { start: 5, end: 9 }));
        for wrong in ["", "x", "9..5", "5..5", "-1", "1-2", "18446744073709551615"] {
            assert!(wrong.parse::<Indices>().is_err(), "{wrong}");
        }
    }
}
