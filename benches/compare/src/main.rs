//! loaderx beside the other ways to feed training: the same data, the same batches, one run.
//!
//! Every system does a short burst of batches in turn, round after round, so that a slow phase of the machine
//! hits all of them. The Python peers' processes are halted while it is not their turn.

mod data;
mod harness;
mod python;
mod report;
mod systems;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The allocator behind every row but Python's, which bring their own.
const ALLOCATOR_NAME: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "the system's" };

/// Compares loaderx with its peers on real MNIST, film snippets and named synthetic data.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// A short run, to see that everything works; its figures mean little.
    #[arg(long)]
    quick: bool,
    /// Writes every row to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Makes virtual environments and runs the Python peers (loaderx 0.9.4 and 2.8.19, NumPy, LMDB, Lance) too.
    #[arg(long)]
    with_python: bool,
    /// Where the data are made and kept; about 4 GB.
    #[arg(long, value_name = "DIR", default_value = "target/compare")]
    data_dir: PathBuf,
    /// Only work whose name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> harness::Outcome<()> {
    let data = data::Data::prepare(&args.data_dir, args.quick)?;
    let mut python = if args.with_python { Some(python::Python::start(&args.data_dir)?) } else { None };
    println!("allocator: {ALLOCATOR_NAME}");
    let mut report = report::Report::default();
    for work in work::all(&data) {
        if args.only.as_ref().is_some_and(|text| !work.name.contains(text.as_str())) {
            continue;
        }
        let systems = systems::all(&work, &data, python.as_mut())?;
        let rows = harness::measure(&work, systems, args.quick)?;
        report.add(rows);
    }
    report.left_out(python.as_ref());
    if let Some(path) = &args.json {
        report.write_json(path)?;
    }
    Ok(())
}
