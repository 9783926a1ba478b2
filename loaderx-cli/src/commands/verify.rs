use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::Store;
use serde_json::json;

use crate::bytes::{grouped, human};
use crate::output::{FAULTS, Outcome, Output};
use crate::target::store_paths;

/// Read every record and list all damage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  every record is sound
  1  faults were found; each is listed
  2  the check could not be made: no store, no permission, a header that is none

Example:
  loaderx verify train || loaderx repair train")]
pub(crate) struct Args {
    /// The store or dataset.
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let mut faults = 0;
        let mut reports = Vec::new();
        for path in store_paths(&self.path)? {
            let report = Store::open(&path)?.verify()?;
            faults += report.fault_count;
            output.line(format_args!(
                "{}: {} records, {} read, {} of them without a checksum: {}",
                path.display(),
                grouped(report.records),
                human(report.bytes),
                grouped(report.unchecked),
                if report.is_sound() { "sound".to_owned() } else { format!("{} faults", report.fault_count) }
            ))?;
            for fault in &report.faults {
                output.line(format_args!("  {fault}"))?;
            }
            if report.fault_count > report.faults.len() as u64 {
                let more = report.fault_count - report.faults.len() as u64;
                output.line(format_args!("  and {} more", grouped(more)))?;
            }
            let listed: Vec<_> = report
                .faults
                .iter()
                .map(|fault| {
                    json!({
                        "kind": fault.kind.name(),
                        "file": fault.file,
                        "chunk": fault.chunk,
                        "record": fault.record,
                        "offset": fault.offset,
                        "detail": fault.detail,
                    })
                })
                .collect();
            reports.push(json!({
                "path": path.display().to_string(),
                "sound": report.is_sound(),
                "records": report.records,
                "checked": report.checked,
                "unchecked": report.unchecked,
                "bytes": report.bytes,
                "fault_count": report.fault_count,
                "faults": listed,
            }));
        }
        output.value(&json!({ "sound": faults == 0, "stores": reports }))?;
        if faults == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        output.line("`loaderx repair` takes damaged records out and keeps what is left of them aside")?;
        Ok(ExitCode::from(FAULTS))
    }
}
