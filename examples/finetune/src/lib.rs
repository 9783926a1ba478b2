//! Fine-tuning a text classifier with candle, its data in loaderx stores.
//!
//! The way of a text, a module each:
//!
//! 1. [`texts`] reads labelled texts, [`tokens`] makes the tokenizer;
//! 2. [`corpus`] tokenises once, into a ragged store of tokens and a dense one of labels;
//! 3. [`batching`] chooses the sampler: padded, bucketed by length, or as many texts as fit a budget;
//! 4. [`trainer`] trains ([`bert`], [`adamw`]), evaluates every held-out text exactly once, and resumes from a
//!    [`checkpoint`] with the losses of a run without a break;
//! 5. [`compare`] measures the three kinds of batches against each other.
#![forbid(unsafe_code)]
#![expect(
    clippy::missing_errors_doc,
    reason = "every fallible function of this program returns a message for the person at the terminal"
)]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

pub mod adamw;
pub mod args;
pub mod batching;
pub mod bert;
pub mod checkpoint;
pub mod compare;
pub mod config;
pub mod corpus;
pub mod parameters;
pub mod random;
pub mod texts;
pub mod tokens;
pub mod trainer;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use args::Args;
use config::Config;
use corpus::Corpus;
use texts::Texts;
use tokenizers::Tokenizer;
use trainer::{Settings, Trainer};

/// Words that the tokenizer of a model from scratch knows at most.
const WORDS: usize = 8000;

/// What a run starts from: the tokenised texts and the model's description.
#[derive(Debug)]
pub struct Setup {
    args: Args,
    config: Config,
    tokenizer: Tokenizer,
    corpus: Corpus,
}

impl Setup {
    /// Reads texts, tokenizer and model description, and tokenises what was not tokenised before.
    pub fn new(args: Args) -> Result<Self> {
        args.check()?;
        let texts = match &args.data {
            Some(file) => Texts::read(file)?,
            None => Texts::embedded()?,
        };
        let (config, tokenizer) = match &args.model {
            Some(folder) => {
                let config = Config::read(&folder.join("config.json"))?;
                let max_len = args.max_len.min(config.max_position_embeddings);
                (config, tokens::read(&folder.join("tokenizer.json"), max_len)?)
            }
            None => {
                let train = texts.train.iter().map(|text| text.text.as_str());
                let tokenizer = tokens::from_texts(train, WORDS, args.max_len)?;
                (Config::small(tokenizer.get_vocab_size(true), args.max_len), tokenizer)
            }
        };
        let corpus = Corpus::open_or_build(&args.data_dir, &texts, &tokenizer)?;
        Ok(Self { args, config, tokenizer, corpus })
    }

    /// The tokenised texts.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// A run at its start.
    pub fn trainer(&self) -> Result<Trainer> {
        self.trainer_with(self.args.batches)
    }

    fn trainer_with(&self, batches: batching::Batching) -> Result<Trainer> {
        let args = &self.args;
        let settings = Settings {
            corpus: self.corpus.fingerprint().to_owned(),
            model: args.model.clone(),
            steps: args.steps,
            batches,
            batch_size: args.batch_size,
            max_tokens: args.max_tokens,
            train_layers: args.train_layers,
            learning_rate: args.learning_rate(),
            seed: args.seed,
        };
        Trainer::new(settings, self.config.clone(), self.tokenizer.clone(), &self.corpus, args.workers)
    }
}

/// Does what the command line says.
pub fn run(args: Args) -> Result<()> {
    let setup = Setup::new(args)?;
    let corpus = &setup.corpus;
    println!(
        "{} texts to train on, {} held out, labels {:?}, in {}",
        corpus.train().texts(),
        corpus.held_out().texts(),
        corpus.labels(),
        corpus.path().display()
    );
    if setup.args.compare {
        return compare::run(&setup);
    }
    train(&setup)
}

fn train(setup: &Setup) -> Result<()> {
    let args = &setup.args;
    let checkpoints = args.data_dir.join("checkpoints");
    let mut trainer = setup.trainer()?;
    if args.resume {
        let newest = checkpoint::newest(&checkpoints)?;
        trainer.resume(&newest).with_context(|| format!("cannot resume from {}", newest.display()))?;
        println!("going on at step {} from {}", trainer.next_step(), newest.display());
    }
    let (trained, all) = trainer.parameters().counts();
    println!("{trained} of {all} parameters are trained");

    let progress = ProgressBar::new(args.steps).with_position(trainer.next_step());
    let style = "{bar:30} step {pos}/{len}  {msg}  {elapsed} so far, {eta} to go";
    progress.set_style(ProgressStyle::with_template(style)?);
    let mut since = Sum::default();
    while trainer.next_step() < args.steps {
        since.add(&trainer.step()?);
        progress.set_position(trainer.next_step());
        progress.set_message(since.to_string());
        let step = trainer.next_step();
        if step.is_multiple_of(args.every) || step == args.steps {
            let score = trainer.evaluate()?;
            let saved = trainer.save(&checkpoints)?;
            let line = format!(
                "step {step}: {since}; held out: accuracy {:.2} % ({} of {}), loss {:.4}; saved {}",
                100.0 * score.accuracy(),
                score.correct,
                score.texts,
                score.loss,
                saved.display()
            );
            progress.suspend(|| println!("{line}"));
            since = Sum::default();
        }
    }
    progress.finish_and_clear();
    Ok(())
}

/// The reports of many steps together.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    steps: u64,
    loss: f64,
    texts: usize,
    tokens: usize,
    cells: usize,
    seconds: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, report: &trainer::Report) {
        self.steps += 1;
        self.loss += f64::from(report.loss);
        self.texts += report.texts;
        self.tokens += report.tokens;
        self.cells += report.cells;
        self.seconds += report.time.as_secs_f64();
    }

    /// The share of the cells that hold no token.
    pub(crate) fn padding(&self) -> f64 {
        1.0 - self.tokens as f64 / self.cells as f64
    }

    pub(crate) fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }

    pub(crate) fn texts_per_second(&self) -> f64 {
        self.texts as f64 / self.seconds
    }

    pub(crate) fn seconds_per_step(&self) -> f64 {
        self.seconds / self.steps as f64
    }

    pub(crate) fn texts_per_step(&self) -> f64 {
        self.texts as f64 / self.steps as f64
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "loss {:.4}, {:.0} tokens/s, padding {:.1} %",
            self.loss / self.steps as f64,
            self.tokens_per_second(),
            100.0 * self.padding()
        )
    }
}
