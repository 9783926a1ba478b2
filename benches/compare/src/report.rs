//! The tables and the JSON.

use std::fs::File;
use std::path::Path;

use serde::Serialize;

use crate::harness::Outcome;
use crate::python::Python;

/// One system's figures on one piece of work.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) work: String,
    pub(crate) system: String,
    pub(crate) threads: usize,
    pub(crate) median_us: f64,
    pub(crate) p10_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) mib_s: f64,
    pub(crate) records_s: f64,
    /// Time as a multiple of loaderx's: 2 means that it takes twice as long.
    pub(crate) ratio_to_loaderx: f64,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Prints a table and keeps its rows.
    pub(crate) fn add(&mut self, rows: Vec<Row>) {
        if let Some(row) = rows.first() {
            println!("\n{}", row.work);
        }
        for row in &rows {
            println!(
                "  {:<32} {:>2} thr {:>10.2} us [{:>9.2} .. {:>9.2}] {:>9.0} MiB/s {:>12.0} records/s  takes {:>6.2}x",
                row.system,
                row.threads,
                row.median_us,
                row.p10_us,
                row.p90_us,
                row.mib_s,
                row.records_s,
                row.ratio_to_loaderx
            );
        }
        self.rows.extend(rows);
    }

    /// Says which peers this run did not have.
    pub(crate) fn left_out(&self, python: Option<&Python>) {
        let mut left_out = Vec::new();
        for (there, name) in [
            (python.is_some(), "Python loaderx 0.9.4 and NumPy (ask with --with-python)"),
            (
                python.is_some_and(Python::has_second),
                "Python loaderx 2.8.19, LMDB and Lance (ask with --with-python; needs Python 3.12)",
            ),
            (cfg!(feature = "redb"), "redb (build with --features redb)"),
            (cfg!(feature = "sqlite"), "SQLite (build with --features sqlite)"),
            (cfg!(feature = "parquet"), "Parquet (build with --features parquet)"),
            (cfg!(feature = "burn"), "burn (build with --features burn)"),
            (cfg!(feature = "burn-sqlite"), "burn's SqliteDataset (build with --features burn-sqlite)"),
            (cfg!(feature = "candle"), "candle (build with --features candle)"),
            (cfg!(feature = "candle-datasets"), "candle's Batcher (build with --features candle-datasets)"),
        ] {
            if !there {
                left_out.push(name);
            }
        }
        if !left_out.is_empty() {
            println!("\nleft out: {}", left_out.join("; "));
        }
    }

    /// Writes the rows as one JSON array.
    pub(crate) fn write_json(&self, path: &Path) -> Outcome<()> {
        serde_json::to_writer_pretty(File::create(path)?, &self.rows)?;
        Ok(())
    }
}
