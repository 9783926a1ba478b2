//! The part of a Hugging Face `config.json` that a BERT encoder needs.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// The sizes of a BERT encoder. Keys of `config.json` that are not listed here are ignored.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Config {
    /// The model family; only `bert` is implemented.
    #[serde(default = "bert")]
    pub model_type: String,
    /// Rows of the token embedding.
    pub vocab_size: usize,
    /// Width of a token's vector.
    pub hidden_size: usize,
    /// Transformer layers.
    pub num_hidden_layers: usize,
    /// Heads of each attention; divides `hidden_size`.
    pub num_attention_heads: usize,
    /// Width of the feed-forward layer.
    pub intermediate_size: usize,
    /// The feed-forward layer's activation.
    #[serde(default)]
    pub hidden_act: Activation,
    /// Share of values that dropout removes while training.
    #[serde(default = "tenth")]
    pub hidden_dropout_prob: f64,
    /// Rows of the position embedding, so the longest text in tokens.
    pub max_position_embeddings: usize,
    /// Rows of the segment embedding; a single text uses row 0.
    #[serde(default = "two")]
    pub type_vocab_size: usize,
    /// Added to the variance in a layer norm.
    #[serde(default = "layer_norm_eps")]
    pub layer_norm_eps: f64,
}

/// The activation between the two halves of the feed-forward layer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Exact GELU, BERT's own.
    #[default]
    Gelu,
    /// GELU by the tanh formula.
    GeluNew,
    /// Rectifier.
    Relu,
}

impl Config {
    /// The encoder that is trained from scratch on the embedded data: about half a million parameters.
    pub fn small(vocab_size: usize, max_len: usize) -> Self {
        Self {
            model_type: bert(),
            vocab_size,
            hidden_size: 64,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            intermediate_size: 128,
            hidden_act: Activation::Gelu,
            hidden_dropout_prob: 0.2,
            max_position_embeddings: max_len,
            type_vocab_size: 2,
            layer_norm_eps: layer_norm_eps(),
        }
    }

    /// Reads `config.json` and checks that it describes an encoder that [`Bert`](crate::bert::Bert) can be.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let config: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a BERT config", path.display()))?;
        config.check().with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if self.model_type != "bert" {
            bail!("model_type is `{}`, this example implements `bert` only", self.model_type);
        }
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ];
        for (name, size) in sizes {
            ensure!(size > 0, "{name} is 0");
        }
        ensure!(
            self.hidden_size.is_multiple_of(self.num_attention_heads),
            "hidden_size {} is not a multiple of num_attention_heads {}",
            self.hidden_size,
            self.num_attention_heads
        );
        ensure!((0.0..1.0).contains(&self.hidden_dropout_prob), "hidden_dropout_prob is not in 0..1");
        Ok(())
    }
}

fn bert() -> String {
    "bert".to_owned()
}

fn tenth() -> f64 {
    0.1
}

fn two() -> usize {
    2
}

fn layer_norm_eps() -> f64 {
    1e-12
}
