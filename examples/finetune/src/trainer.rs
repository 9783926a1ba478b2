//! The training run: one step, one exact evaluation, one checkpoint.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device};
use candle_nn::loss::cross_entropy;
use loaderx_candle::TensorLoader;
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

use crate::adamw::AdamW;
use crate::batching::{self, Batching};
use crate::bert::{Bert, Dropout};
use crate::checkpoint::{self, State};
use crate::config::Config;
use crate::corpus::Corpus;
use crate::parameters::{Parameters, Train};

/// Gradients are scaled down to this norm.
const CLIP: f64 = 1.0;

/// AdamW's decay of matrices.
const WEIGHT_DECAY: f64 = 0.05;

/// Texts in a batch of an evaluation.
const EVALUATION_BATCH: usize = 64;

/// Everything that decides a run, apart from the number of workers, which changes nothing.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Settings {
    /// The corpus' fingerprint: texts, labels, tokenizer and cut.
    pub corpus: String,
    /// The folder of the pre-trained model; none for one from scratch.
    pub model: Option<PathBuf>,
    /// Steps of the whole run; the learning rate's course depends on it.
    pub steps: u64,
    /// How texts are put into batches.
    pub batches: Batching,
    /// Texts in a batch, unless a budget says how many.
    pub batch_size: usize,
    /// Padded tokens in a batch with a budget.
    pub max_tokens: usize,
    /// Layers that are trained; all parameters without it.
    pub train_layers: Option<usize>,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Keys the initial weights, the order of the texts and the dropout.
    pub seed: u64,
}

impl Settings {
    /// The learning rate of `step`: a tenth of the run up to the highest, then down to nothing.
    fn rate(&self, step: u64) -> f64 {
        let warm_up = (self.steps / 10).max(1);
        let share = if step < warm_up {
            (step + 1) as f64 / warm_up as f64
        } else {
            self.steps.saturating_sub(step) as f64 / self.steps.saturating_sub(warm_up).max(1) as f64
        };
        self.learning_rate * share
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The step's number, from 0.
    pub step: u64,
    /// Mean loss over the batch.
    pub loss: f32,
    /// Texts in the batch.
    pub texts: usize,
    /// Tokens in the batch, padding not counted.
    pub tokens: usize,
    /// Cells of the padded batch.
    pub cells: usize,
    /// From asking for the batch to the updated weights.
    pub time: Duration,
}

/// The outcome of an exact evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Texts evaluated: every held-out text once.
    pub texts: u64,
    /// Texts whose most likely label was right.
    pub correct: u64,
    /// Mean loss.
    pub loss: f64,
}

impl Score {
    /// The share of texts whose label was right.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.texts as f64
    }
}

/// A model under training, with the data it is trained and evaluated on.
#[derive(Debug)]
pub struct Trainer {
    settings: Settings,
    config: Config,
    tokenizer: Tokenizer,
    parameters: Parameters,
    training: Bert,
    inference: Bert,
    optimizer: AdamW,
    loader: TensorLoader,
    held_out: TensorLoader,
    device: Device,
}

impl Trainer {
    /// A run at its start. `config` describes the model; its weights come from the settings' folder, or the seed.
    pub fn new(
        settings: Settings,
        config: Config,
        tokenizer: Tokenizer,
        corpus: &Corpus,
        workers: usize,
    ) -> Result<Self> {
        let device = Device::Cpu;
        let vocabulary = tokenizer.get_vocab_size(true);
        ensure!(
            vocabulary <= config.vocab_size,
            "the tokenizer has {vocabulary} tokens, the model knows {}",
            config.vocab_size
        );
        let train = settings.train_layers.map_or(Train::All, Train::LastLayers);
        let mut parameters = Parameters::new(&config, corpus.labels().len(), train, settings.seed, &device)?;
        if let Some(folder) = &settings.model {
            parameters.load_pretrained(&folder.join("model.safetensors"), &device)?;
        }
        Ok(Self {
            training: Bert::training(&config, &parameters)?,
            inference: Bert::inference(&config, &parameters)?,
            optimizer: AdamW::new(&parameters, WEIGHT_DECAY)?,
            loader: batching::training(corpus, &settings, workers)?.on(&device),
            held_out: batching::held_out(corpus, workers)?.on(&device),
            settings,
            config,
            tokenizer,
            parameters,
            device,
        })
    }

    /// The step that comes next.
    pub fn next_step(&self) -> u64 {
        self.loader.step()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Trains on the next batch.
    pub fn step(&mut self) -> Result<Report> {
        let began = Instant::now();
        let step = self.loader.step();
        let batch = self.loader.next().context("the training loader has ended")??;
        let tokens = batch.padded("tokens")?;
        let mut dropout = Dropout::new(self.settings.seed, step);
        let logits = self.training.forward(
            &tokens.values,
            &tokens.mask,
            &tokens.additive_mask()?,
            Some(&mut dropout),
        )?;
        let loss = cross_entropy(&logits, batch.tensor("label")?)?;
        self.optimizer.update(&loss.backward()?, self.settings.rate(step), CLIP)?;
        let loss = loss.to_scalar::<f32>()?;
        Ok(Report {
            step,
            loss,
            texts: batch.records(),
            tokens: tokens.rows(),
            cells: batch.records() * tokens.width,
            time: began.elapsed(),
        })
    }

    /// Evaluates every held-out text exactly once.
    pub fn evaluate(&mut self) -> Result<Score> {
        let pass = self.held_out.pass(EVALUATION_BATCH)?;
        let expected = pass.records();
        let mut score = Score { texts: 0, correct: 0, loss: 0.0 };
        for batch in pass {
            let batch = batch?;
            let (tokens, labels) = (batch.padded("tokens")?, batch.tensor("label")?);
            let logits =
                self.inference.forward(&tokens.values, &tokens.mask, &tokens.additive_mask()?, None)?;
            let loss = f64::from(cross_entropy(&logits, labels)?.to_scalar::<f32>()?);
            let right = logits.argmax(1)?.eq(labels)?.to_dtype(DType::U32)?.sum_all()?.to_scalar::<u32>()?;
            score.texts += batch.records() as u64;
            score.correct += u64::from(right);
            score.loss += loss * batch.records() as f64;
        }
        ensure!(score.texts == expected, "{} texts were evaluated, there are {expected}", score.texts);
        score.loss /= score.texts as f64;
        Ok(score)
    }

    /// Writes a checkpoint below `folder`.
    pub fn save(&self, folder: &Path) -> Result<PathBuf> {
        checkpoint::write(folder, self.next_step(), |into| {
            self.parameters.save(&into.join("model.safetensors"))?;
            self.optimizer.save(&into.join("optimizer.safetensors"))?;
            self.tokenizer
                .save(into.join("tokenizer.json"), false)
                .map_err(|error| anyhow::anyhow!("cannot write the tokenizer: {error}"))?;
            let state = State {
                settings: self.settings.clone(),
                updates: self.optimizer.updates(),
                loader: self.loader.state(),
            };
            write_json(&into.join("config.json"), &self.config)?;
            write_json(&into.join("state.json"), &state)
        })
    }

    /// Goes on from a checkpoint: the losses from there on are those of a run without a break.
    pub fn resume(&mut self, checkpoint: &Path) -> Result<()> {
        let state = checkpoint::read_state(checkpoint)?;
        checkpoint::require_same(&state.settings, &self.settings)?;
        self.parameters.load(&checkpoint.join("model.safetensors"), &self.device)?;
        self.optimizer.load(&checkpoint.join("optimizer.safetensors"), state.updates, &self.device)?;
        // Parameters that are not trained were replaced, not overwritten.
        self.training = Bert::training(&self.config, &self.parameters)?;
        self.inference = Bert::inference(&self.config, &self.parameters)?;
        self.loader.resume(&state.loader)?;
        Ok(())
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
