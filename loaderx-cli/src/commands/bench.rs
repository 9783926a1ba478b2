use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use loaderx_core::sampler::{Iid, Sampler};
use loaderx_core::{Error, ErrorKind, Result, Store};
use serde_json::json;

use crate::bytes::quotient;
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Measure how fast random batches are gathered here, against plain copying of the same bytes.
///
/// Every batch is gathered into a fresh buffer, as in training. The plain copy takes the batch's bytes, which are then
/// in memory, to another fresh buffer.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  loaderx bench train/image --batch-size 256\n  sudo loaderx bench train/image --cold"
)]
pub(crate) struct Args {
    /// The store.
    path: PathBuf,

    /// Records in a batch.
    #[arg(long, default_value_t = 64)]
    batch_size: usize,

    /// Seconds for each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// Empty the machine's page cache first (Linux, needs root) and measure one pass of cold reads too.
    #[arg(long)]
    cold: bool,
}

struct Rate {
    records: u64,
    bytes: u64,
    time: Duration,
}

impl Rate {
    fn records_per_second(&self) -> f64 {
        quotient(self.records, 1) / self.time.as_secs_f64().max(1e-9)
    }

    fn bytes_per_second(&self) -> f64 {
        quotient(self.bytes, 1) / self.time.as_secs_f64().max(1e-9)
    }
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.path)?;
        let store = target.single(&self.path)?;
        if store.is_empty() {
            return Err(Error::invalid("the store is empty").at_path(&self.path).into());
        }
        let seconds = Duration::try_from_secs_f64(self.seconds)
            .map_err(|_| Error::invalid(format!("{} seconds cannot be measured", self.seconds)))?;
        let sampler = Iid::new(store.len(), self.batch_size, 1)?;
        let mut rows = Vec::new();
        if self.cold {
            drop_caches()?;
            rows.push(("gather, cold", gather(store, &sampler, seconds, 0)?));
        }
        // The first pass brings the pages in; the second one is measured.
        gather(store, &sampler, seconds / 4, 1 << 32)?;
        rows.push(("gather, warm", gather(store, &sampler, seconds, 1 << 32)?));
        rows.push(("plain copy", copy(store, &sampler, seconds)?));
        let mut values = Vec::new();
        for (name, rate) in &rows {
            output.line(format_args!(
                "{name:<13} {:>12.0} records/s {:>9.1} MB/s",
                rate.records_per_second(),
                rate.bytes_per_second() / 1e6
            ))?;
            values.push(json!({
                "name": name,
                "records_per_second": rate.records_per_second(),
                "bytes_per_second": rate.bytes_per_second(),
            }));
        }
        output.value(&json!({ "batch_size": self.batch_size, "measurements": values }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Gathers batches from the step `first` on until the time is over.
fn gather(store: &Store, sampler: &Iid, time: Duration, first: u64) -> Result<Rate> {
    let mut rate = Rate { records: 0, bytes: 0, time: Duration::ZERO };
    let mut indices = Vec::new();
    let mut step = first;
    while rate.time < time {
        sampler.draw(step, &mut indices);
        let started = Instant::now();
        let (bytes, _) = store.gather_packed(&indices)?;
        rate.time += started.elapsed();
        rate.records += indices.len() as u64;
        rate.bytes += bytes.len() as u64;
        black_box(&bytes);
        step += 1;
        stop_on_interrupt()?;
    }
    Ok(rate)
}

/// Copies a batch's bytes from memory to memory.
fn copy(store: &Store, sampler: &Iid, time: Duration) -> Result<Rate> {
    let mut indices = Vec::new();
    sampler.draw(0, &mut indices);
    let records = indices.iter().map(|&index| store.get(index)).collect::<Result<Vec<_>>>()?;
    let total: usize = records.iter().map(Vec::len).sum();
    let mut rate = Rate { records: 0, bytes: 0, time: Duration::ZERO };
    while rate.time < time {
        let started = Instant::now();
        let mut bytes = Vec::with_capacity(total);
        for record in &records {
            bytes.extend_from_slice(black_box(record));
        }
        black_box(&bytes);
        rate.time += started.elapsed();
        rate.records += records.len() as u64;
        rate.bytes += total as u64;
        stop_on_interrupt()?;
    }
    Ok(rate)
}

fn stop_on_interrupt() -> Result<()> {
    if crate::progress::is_interrupted() {
        return Err(Error::new(ErrorKind::Cancelled, "stopped"));
    }
    Ok(())
}

fn drop_caches() -> Result<()> {
    let file = "/proc/sys/vm/drop_caches";
    std::fs::write(file, "1").map_err(|error| {
        Error::io("empty the page cache", file, error).with_hint("run as root on Linux, or leave out --cold")
    })
}
