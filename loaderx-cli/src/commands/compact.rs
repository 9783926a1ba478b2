use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::bytes::{grouped, human};
use crate::output::{Outcome, Output};
use crate::progress::explain_interrupts;
use crate::target::{open_writable, store_paths};

/// Free the bytes of deleted records, in place.
///
/// It may be interrupted at any time: the store stays whole, and the next `loaderx compact` goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loaderx compact train")]
pub(crate) struct Args {
    /// The store or dataset.
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        explain_interrupts("the store is whole; `loaderx compact` goes on with it");
        let mut reports = Vec::new();
        for path in store_paths(&self.path)? {
            let report = open_writable(&path)?.compact()?;
            output.line(format_args!(
                "{}: from {} to {}, {} records moved",
                path.display(),
                human(report.bytes_before),
                human(report.bytes_after),
                grouped(report.records_moved)
            ))?;
            reports.push(json!({
                "path": path.display().to_string(),
                "bytes_before": report.bytes_before,
                "bytes_after": report.bytes_after,
                "records_moved": report.records_moved,
                "bytes_moved": report.bytes_moved,
            }));
        }
        output.value(&json!({ "stores": reports }))?;
        Ok(ExitCode::SUCCESS)
    }
}
