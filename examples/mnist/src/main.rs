//! Trains a small convolutional network on the real MNIST, out of loaderx stores, with burn on the CPU.
//!
//! ```sh
//! cargo run --release -p mnist
//! ```

mod args;
mod batches;
mod checkpoint;
mod dataset;
mod evaluate;
mod model;
mod progress;
mod train;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use clap::Parser;

use args::Args;
use dataset::Mnist;

/// Every failure ends the program with its message.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let stop = stop_at_ctrl_c()?;
    let checkpoints = train::checkpoints(args)?;
    let mnist = match Mnist::prepare(args, &stop) {
        Err(_) if stop.load(Ordering::Relaxed) => {
            println!("stopped before training");
            return Ok(INTERRUPTED.into());
        }
        prepared => prepared?,
    };
    let device = Device::flex();
    let trained = train::train(&mnist, args, checkpoints.as_ref(), &device, &stop)?;
    if trained.stopped {
        let how = if checkpoints.is_some() { "; go on with --resume" } else { "" };
        println!("stopped before the end{how}");
        return Ok(INTERRUPTED.into());
    }
    println!("{}", evaluate::evaluate(&trained.network, &mnist, args, &device)?);
    Ok(ExitCode::SUCCESS)
}

/// The first Ctrl-C asks for a clean end, the second one ends at once.
fn stop_at_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    })?;
    Ok(stop)
}
