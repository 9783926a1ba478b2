//! Loaders: the three ways of putting texts into batches that the example compares, and the exact pass.

use anyhow::Result;
use clap::ValueEnum;
use loaderx_candle::{Columns, TensorLoader};
use loaderx_core::Loader;
use loaderx_core::sampler::{Bucketed, Cyclic, Sequential, Tail, TokenBudget};
use serde::{Deserialize, Serialize};

use crate::corpus::{Corpus, Part};
use crate::trainer::Settings;

/// How texts are put together into batches. All three are pure functions of the step, so each resumes exactly.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Batching {
    /// Any texts together, padded to the longest of them
    Padded,
    /// A fixed number of texts of similar length
    Bucketed,
    /// Texts of similar length, as many as fit a budget of padded tokens
    #[default]
    Budget,
}

/// Buckets of similar length that the texts are put into, when there are enough texts for so many.
const BUCKETS: usize = 24;

/// The endless loader of the texts to train on.
pub fn training(corpus: &Corpus, settings: &Settings, workers: usize) -> Result<TensorLoader> {
    let part = corpus.train();
    let lengths = part.lengths()?;
    let (batch, seed) = (settings.batch_size, settings.seed);
    let builder = streams(part)?.workers(workers);
    let builder = match settings.batches {
        Batching::Padded => builder.sampler(Cyclic::new(part.texts(), batch, seed)?),
        Batching::Bucketed => {
            // A bucket holds some batches at least, so that its texts meet in new company each cycle.
            let buckets = (lengths.len() / (4 * batch)).clamp(1, BUCKETS);
            builder.sampler(Bucketed::new(&lengths, buckets, batch, Tail::Drop, seed)?)
        }
        Batching::Budget => {
            let tokens = u64::try_from(settings.max_tokens)?;
            builder.sampler(TokenBudget::padded(&lengths, tokens, seed)?)
        }
    };
    Ok(TensorLoader::new(builder, columns())?)
}

/// A loader of the held-out texts; only its exact pass is used.
pub fn held_out(corpus: &Corpus, workers: usize) -> Result<TensorLoader> {
    let part = corpus.held_out();
    let builder = streams(part)?.sampler(Sequential::new(part.texts(), 1)?).workers(workers).prefetch(2);
    Ok(TensorLoader::new(builder, columns())?)
}

fn streams(part: &Part) -> Result<loaderx_core::loader::LoaderBuilder> {
    Ok(Loader::builder().stream("tokens", part.tokens()?).stream("label", part.labels()))
}

/// Both are `u32` in the store's view already; the check refuses what candle would read as "no row".
fn columns() -> Columns {
    Columns::new().ids("tokens").ids("label")
}
