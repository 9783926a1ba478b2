use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use loaderx_core::sampler::{Cyclic, Iid, Sampler};
use loaderx_core::{Error, Result, Store};
use serde_json::json;

use crate::bytes::{human, quotient};
use crate::cold;
use crate::output::{Outcome, Output};
use crate::target::{Target, store_paths};

/// Batches that are asked for ahead of a cold read, as the loader does it.
const LEAD: u64 = 2;
/// The plain copy goes over at most so many bytes, which no cache holds.
const COPIED: usize = 256 << 20;
/// The least time for bringing the batches into memory.
const WARM_UP: Duration = Duration::from_secs(1);

/// Measure how fast random batches are gathered here, against plain copying of the same bytes.
///
/// Every batch is gathered into a fresh buffer, as in training. The plain copy takes the same batches, which then lie one
/// after the other in memory, to fresh buffers too. A cold read is preceded by asking for two batches ahead, as the loader
/// does.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  loaderx bench train/image --batch-size 256\n  loaderx bench train/image --cold"
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

    /// Have the store's files dropped from memory first (Linux) and measure one pass of cold reads too.
    #[arg(long)]
    cold: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    records: u64,
    bytes: u64,
    time: Duration,
}

impl Rate {
    /// Adds a batch, which `make` gives as its records and bytes, and the time that it takes.
    fn add(&mut self, make: impl FnOnce() -> Result<(usize, Vec<u8>)>) -> Result<()> {
        let started = Instant::now();
        let (records, bytes) = make()?;
        self.time += started.elapsed();
        self.records += records as u64;
        self.bytes += bytes.len() as u64;
        black_box(&bytes);
        Ok(())
    }

    fn records_per_second(&self) -> f64 {
        quotient(self.records, 1) / self.time.as_secs_f64().max(1e-9)
    }

    fn bytes_per_second(&self) -> f64 {
        quotient(self.bytes, 1) / self.time.as_secs_f64().max(1e-9)
    }
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        // Before the store is opened: what is mapped stays in memory.
        if self.cold {
            Target::open(&self.path)?.single(&self.path)?;
            for path in store_paths(&self.path)? {
                cold::forget(&path)?;
            }
        }
        let target = Target::open(&self.path)?;
        let store = target.single(&self.path)?;
        if store.is_empty() {
            return Err(Error::invalid("the store is empty").at_path(&self.path).into());
        }
        if self.batch_size as u64 > store.len() {
            let message = format!("a batch of {} of a store of {} records", self.batch_size, store.len());
            let error = Error::invalid(message).at_path(&self.path);
            return Err(error.with_hint("give a smaller --batch-size").into());
        }
        let seconds = Duration::try_from_secs_f64(self.seconds)
            .map_err(|_| Error::invalid(format!("{} seconds cannot be measured", self.seconds)))?;
        let sampler = Iid::new(store.len(), self.batch_size, 1)?;
        let mut rows = Vec::new();
        let mut from_disk = None;
        if self.cold {
            let before = cold::bytes_read();
            rows.push(("gather, cold", gather_cold(store, self.batch_size, seconds)?));
            from_disk = cold::bytes_read().zip(before).map(|(after, before)| after.saturating_sub(before));
        }
        // Gathered once, these batches are in memory, in the store and as plain bytes.
        let batches = Batches::gather(store, &sampler, seconds.max(WARM_UP))?;
        let warm = gather_warm(store, &sampler, batches.records.len() as u64, seconds)?;
        let plain = copy(&batches, seconds)?;
        let ratio = warm.bytes_per_second() / plain.bytes_per_second().max(1e-9);
        rows.extend([("gather, warm", warm), ("plain copy", plain)]);
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
        output.line(format_args!("a warm gather runs at {ratio:.2} of the plain copy"))?;
        if let Some(bytes) = from_disk {
            output.line(format_args!(
                "{} were read from the disk for the cold row{}",
                human(bytes),
                if bytes == 0 { ": the system kept the files in memory, so it is a warm one" } else { "" }
            ))?;
        }
        output.value(&json!({
            "batch_size": self.batch_size,
            "measurements": values,
            "warm_to_copy": ratio,
            "disk_bytes": from_disk,
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The first batches of a sampler, one after the other in memory.
struct Batches {
    bytes: Vec<u8>,
    /// Records of each.
    records: Vec<usize>,
    /// Where each begins, and the last one ends.
    bounds: Vec<usize>,
}

impl Batches {
    /// As many as go into [`COPIED`] bytes or into the time.
    fn gather(store: &Store, sampler: &Iid, time: Duration) -> Result<Self> {
        let started = Instant::now();
        let mut batches = Self { bytes: Vec::new(), records: Vec::new(), bounds: vec![0] };
        let mut indices = Vec::new();
        for step in 0..1 << 16 {
            sampler.draw(step, &mut indices);
            store.advise(&indices);
            let (bytes, _) = store.gather_packed(&indices)?;
            batches.bytes.extend_from_slice(&bytes);
            batches.records.push(indices.len());
            batches.bounds.push(batches.bytes.len());
            if batches.bytes.len() >= COPIED || started.elapsed() >= time {
                break;
            }
        }
        Ok(batches)
    }
}

/// Gathers the sampler's first batches again and again until the time is over.
fn gather_warm(store: &Store, sampler: &Iid, batches: u64, time: Duration) -> Result<Rate> {
    let mut rate = Rate::default();
    let mut indices = Vec::new();
    for step in (0..batches).cycle() {
        sampler.draw(step, &mut indices);
        rate.add(|| store.gather_packed(&indices).map(|(bytes, _)| (indices.len(), bytes)))?;
        if rate.time >= time {
            break;
        }
    }
    Ok(rate)
}

/// Gathers batches in a random order, no record twice, until the time or the store is over.
fn gather_cold(store: &Store, batch: usize, time: Duration) -> Result<Rate> {
    let sampler = Cyclic::new(store.len(), batch, 1)?;
    let mut rate = Rate::default();
    let (mut indices, mut ahead) = (Vec::new(), Vec::new());
    for step in 0..(store.len() / batch.max(1) as u64).max(1) {
        let asked = if step == 0 { 0..=LEAD } else { step + LEAD..=step + LEAD };
        sampler.draw(step, &mut indices);
        rate.add(|| {
            for step in asked {
                sampler.draw(step, &mut ahead);
                store.advise(&ahead);
            }
            store.gather_packed(&indices).map(|(bytes, _)| (indices.len(), bytes))
        })?;
        if rate.time >= time {
            break;
        }
    }
    Ok(rate)
}

/// Copies the same batches from memory to memory.
fn copy(batches: &Batches, time: Duration) -> Result<Rate> {
    let mut rate = Rate::default();
    for (records, bounds) in batches.records.iter().zip(batches.bounds.windows(2)).cycle() {
        let range = bounds.first().copied().unwrap_or(0)..bounds.last().copied().unwrap_or(0);
        let source = batches.bytes.get(range).unwrap_or_default();
        rate.add(|| Ok((*records, black_box(source).to_vec())))?;
        if rate.time >= time {
            break;
        }
    }
    Ok(rate)
}
