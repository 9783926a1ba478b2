use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::convert::Dataset;
use loaderx_core::store::repair;
use loaderx_core::{Error, ErrorKind};
use serde_json::json;

use crate::bytes::grouped;
use crate::output::{Outcome, Output};

/// Make a damaged store sound again: damaged records are taken out and kept aside.
///
/// The last records take the places of those taken out, as with `loaderx delete`. A stream of a dataset is then
/// shorter than the others and in another order, so delete the same records from those.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loaderx repair train/image")]
pub(crate) struct Args {
    /// The store.
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        if !self.path.join("meta.zr").exists()
            && let Ok(dataset) = Dataset::open(&self.path)
        {
            let names: Vec<_> =
                dataset.names().map(|name| self.path.join(name).display().to_string()).collect();
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "this is a dataset, and one store is repaired at a time",
            )
            .at_path(&self.path)
            .with_hint(format!("name the stream that `loaderx verify` complains of: {}", names.join(", ")))
            .into());
        }
        let report = repair(&self.path)?;
        output.line(format_args!(
            "{}: {} records are left, {} were taken out, {} table entries were lost",
            self.path.display(),
            grouped(report.records),
            grouped(report.removed.len() as u64),
            grouped(report.entries_lost)
        ))?;
        for fault in &report.faults {
            output.line(format_args!("  {fault}"))?;
        }
        for file in &report.aside {
            output.line(format_args!("  kept aside: {}", self.path.join(file).display()))?;
        }
        if report.sealed > 0 {
            output.line(format_args!("  {} sound records got a checksum", grouped(report.sealed)))?;
        }
        output.value(&json!({
            "path": self.path.display().to_string(),
            "records": report.records,
            "removed": report.removed,
            "entries_lost": report.entries_lost,
            "sealed": report.sealed,
            "aside": report.aside,
            "faults": report.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}
