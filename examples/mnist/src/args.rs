//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Trains a small convolutional network on MNIST, out of loaderx stores.
///
/// The first run converts the four files of MNIST into stores; later ones use these. Stop with Ctrl-C at any time.
#[derive(Clone, Debug, Parser)]
#[command(name = "mnist", version, max_term_width = 100)]
pub struct Args {
    /// Steps to train in all, those of the runs that are resumed among them.
    #[arg(long, default_value_t = 2000)]
    pub steps: u64,

    /// Images in each step.
    #[arg(long, default_value_t = 128)]
    pub batch_size: usize,

    /// Threads that prepare batches; 0 leaves that to the training thread. The batches are the same.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,

    /// How the records are stored.
    #[arg(long, value_enum, default_value_t = CodecName::Raw)]
    pub codec: CodecName,

    /// Decides the network's first weights and the order of the images.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Learning rate of the first step; it falls to a tenth within 2000 steps.
    #[arg(long, default_value_t = 2e-3, value_parser = learning_rate, allow_negative_numbers = true)]
    pub lr: f64,

    /// Saves model, optimizer and loader state in this folder: every 500 steps, at the end and at Ctrl-C.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,

    /// Goes on from the newest state in the checkpoint folder.
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,

    /// Folder for the stores [default: `mnist-data` beside the program].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Folder with the four files of MNIST [default: the example's own].
    #[arg(long, value_name = "DIR")]
    pub mnist_dir: Option<PathBuf>,

    /// Prints the loss of every so many steps.
    #[arg(long, value_name = "STEPS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub log_every: u64,
}

/// How records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodecName {
    /// As they are.
    Raw,
    /// Each record compressed by zstd.
    Zstd,
}

fn learning_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        Ok(rate) => Err(format!("{rate} is not a positive number")),
        Err(error) => Err(error.to_string()),
    }
}

impl Args {
    /// The folder for the stores.
    pub fn data_dir(&self) -> std::io::Result<PathBuf> {
        match &self.data_dir {
            Some(dir) => Ok(dir.clone()),
            // Within cargo's target folder, so that `cargo clean` takes it away.
            None => Ok(std::env::current_exe()?.with_file_name("mnist-data")),
        }
    }

    /// The folder with the four files.
    pub fn mnist_dir(&self) -> PathBuf {
        match &self.mnist_dir {
            Some(dir) => dir.clone(),
            None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data")),
        }
    }
}
