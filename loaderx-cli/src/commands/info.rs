use std::path::PathBuf;
use std::process::ExitCode;

use loaderx_core::store::Stats;
use loaderx_core::{Kind, Store};
use serde_json::{Value, json};

use super::storage::described;
use crate::bytes::{grouped, human, quotient};
use crate::output::{Failure, Outcome, Output};
use crate::target::Target;

/// Lengths of at most so many records, evenly spaced, make the distribution.
const SAMPLED: u64 = 1 << 20;

/// Say what a store or dataset is: records, shapes, types, codec, sizes, lengths.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx info train\n  loaderx info train/image --json")]
pub(crate) struct Args {
    /// The store or dataset.
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.path)?;
        let what = if target.is_dataset { "a dataset" } else { "a store" };
        output.line(format_args!("{}: {what} of {} records", self.path.display(), grouped(target.len())))?;
        let mut streams = Vec::new();
        for (name, store) in &target.streams {
            let description = Description::of(store)?;
            description.print(name, store, output)?;
            streams.push(description.json(name, store));
        }
        output.value(&json!({
            "path": self.path.display().to_string(),
            "dataset": target.is_dataset,
            "records": target.len(),
            "streams": streams,
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

struct Description {
    stats: Stats,
    /// Rows a record at 0, 50, 90, 99 and 100 %, where records differ.
    lengths: Option<[u64; 5]>,
    checked: bool,
}

impl Description {
    fn of(store: &Store) -> loaderx_core::Result<Self> {
        let ragged = store.schema().is_none_or(|schema| schema.kind() == Kind::Ragged);
        Ok(Self {
            stats: store.stats()?,
            lengths: if ragged && !store.is_empty() { Some(lengths(store)?) } else { None },
            checked: store.path().join("check.zr").exists(),
        })
    }

    fn print(&self, name: &str, store: &Store, output: &Output) -> Result<(), Failure> {
        let stats = &self.stats;
        if !name.is_empty() {
            output.line(format_args!("{name}:"))?;
        }
        output.line(format_args!("  records     {}", described(store.schema())))?;
        output.line(format_args!(
            "  format      version {}, codec {}",
            stats.format.number(),
            stats.codec.name()
        ))?;
        output.line(format_args!(
            "  size        {} stored, {} decoded, ratio {:.2}",
            human(stats.stored_bytes),
            human(stats.decoded_bytes),
            quotient(stats.decoded_bytes, stats.stored_bytes)
        ))?;
        output.line(format_args!(
            "  stored as   {} raw, {} zstd, {} zstd with dictionary",
            grouped(stats.raw_records),
            grouped(stats.zstd_records),
            grouped(stats.zstd_dict_records)
        ))?;
        output.line(format_args!("  chunks      {} with {}", stats.chunks, human(stats.chunk_bytes)))?;
        if stats.garbage_bytes > 0 {
            output.line(format_args!(
                "  garbage     {} of deleted records; `loaderx compact` frees it",
                human(stats.garbage_bytes)
            ))?;
        }
        if stats.dictionary_bytes > 0 {
            output.line(format_args!("  dictionary  {}", human(stats.dictionary_bytes)))?;
        }
        if let Some([least, half, most_of, nearly_all, most]) = self.lengths {
            output.line(format_args!(
                "  lengths     {least} to {most} rows; half have at most {half}, 90 % {most_of}, 99 % {nearly_all}"
            ))?;
        }
        let checks =
            if self.checked { "checksums kept" } else { "no checksums (raw records cannot be checked)" };
        output.line(format_args!("  checks      {checks}"))?;
        Ok(())
    }

    fn json(&self, name: &str, store: &Store) -> Value {
        let stats = &self.stats;
        json!({
            "name": name,
            "path": store.path().display().to_string(),
            "kind": store.schema().map(|schema| schema.kind().name()),
            "dtype": store.schema().map(|schema| schema.dtype().name()),
            "item_shape": store.schema().map(|schema| schema.item_shape()),
            "records": stats.records,
            "format_version": stats.format.number(),
            "codec": stats.codec.name(),
            "stored_bytes": stats.stored_bytes,
            "decoded_bytes": stats.decoded_bytes,
            "ratio": quotient(stats.decoded_bytes, stats.stored_bytes),
            "raw_records": stats.raw_records,
            "zstd_records": stats.zstd_records,
            "zstd_dict_records": stats.zstd_dict_records,
            "chunks": stats.chunks,
            "chunk_bytes": stats.chunk_bytes,
            "garbage_bytes": stats.garbage_bytes,
            "dictionary_bytes": stats.dictionary_bytes,
            "checksums": self.checked,
            "rows": self.lengths.map(|[least, half, most_of, nearly_all, most]| json!({
                "min": least, "p50": half, "p90": most_of, "p99": nearly_all, "max": most,
            })),
        })
    }
}

fn lengths(store: &Store) -> loaderx_core::Result<[u64; 5]> {
    let row = store.schema().map_or(1, |schema| schema.item_bytes().max(1)) as u64;
    let step = store.len().div_ceil(SAMPLED).max(1);
    let (mut rows, mut block) = (Vec::new(), Vec::new());
    let mut indices = (0..store.len()).step_by(usize::try_from(step).unwrap_or(usize::MAX)).peekable();
    while indices.peek().is_some() {
        let wanted: Vec<u64> = indices.by_ref().take(1 << 16).collect();
        store.lengths(&wanted, &mut block)?;
        rows.extend(block.iter().map(|bytes| bytes / row));
    }
    rows.sort_unstable();
    let at = |percent: usize| rows.get((rows.len() - 1) * percent / 100).copied().unwrap_or(0);
    Ok([at(0), at(50), at(90), at(99), at(100)])
}
