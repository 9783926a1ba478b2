//! A BERT encoder with mean pooling and a classification head, for training.
//!
//! candle's fused layer norm has no gradient: a model built on it trains silently nothing but its head. This one uses
//! the fused operation only where nothing upstream is trained, and `layer_norm_slow` everywhere else.

use anyhow::{Result, ensure};
use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops;

use crate::config::{Activation, Config};
use crate::parameters::Parameters;
use crate::random::Random;

/// The encoder and its head.
#[derive(Debug)]
pub struct Bert {
    words: Tensor,
    positions: Tensor,
    segment: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
    head: Linear,
    dropout: f64,
}

/// The dropout of one training step: a function of the key, so that a resumed run drops the same values.
#[derive(Debug)]
pub struct Dropout {
    seed: u64,
    step: u64,
    site: u64,
}

impl Dropout {
    /// The masks of one step.
    pub fn new(seed: u64, step: u64) -> Self {
        Self { seed, step, site: 0 }
    }

    fn apply(&mut self, x: &Tensor, p: f64) -> Result<Tensor> {
        self.site += 1;
        if p == 0.0 {
            return Ok(x.clone());
        }
        let mask = Random::keyed(self.seed, &[self.step, self.site]).dropout(x.elem_count(), p);
        Ok((x * Tensor::from_vec(mask, x.shape(), x.device())?)?)
    }
}

impl Bert {
    /// The model as it is trained: its graph reaches every parameter that is.
    pub fn training(config: &Config, parameters: &Parameters) -> Result<Self> {
        Self::build(config, &|name| parameters.tracked(name))
    }

    /// The model as it is evaluated: the same memory, no graph, faster.
    pub fn inference(config: &Config, parameters: &Parameters) -> Result<Self> {
        Self::build(config, &|name| parameters.untracked(name))
    }

    fn build(config: &Config, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        let eps = config.layer_norm_eps;
        let layers =
            (0..config.num_hidden_layers).map(|i| Layer::build(config, &format!("encoder.layer.{i}"), get));
        Ok(Self {
            words: get("embeddings.word_embeddings.weight")?,
            positions: get("embeddings.position_embeddings.weight")?,
            segment: get("embeddings.token_type_embeddings.weight")?,
            norm: Norm::build("embeddings.LayerNorm", eps, get)?,
            layers: layers.collect::<Result<_>>()?,
            head: Linear::build("classifier", get)?,
            dropout: config.hidden_dropout_prob,
        })
    }

    /// Logits, `(rows, classes)`; the arguments are those of [`Bert::pooled`].
    pub fn forward(
        &self,
        ids: &Tensor,
        mask: &Tensor,
        additive: &Tensor,
        dropout: Option<&mut Dropout>,
    ) -> Result<Tensor> {
        let mut drop = Dropping { masks: dropout, p: self.dropout };
        let pooled = self.encode(ids, mask, additive, &mut drop)?;
        self.head.forward(&drop.apply(&pooled)?)
    }

    /// The mean of each text's token vectors, `(rows, hidden)`: what a sentence model calls its embedding.
    ///
    /// `ids` are tokens (`u32`, `(rows, len)`, padded on the right with any id), `mask` is 1 for a token and 0
    /// for padding (`u8`), `additive` is the same mask as it is added to attention scores (`f32`: 0 for a
    /// token, a large negative number for padding).
    pub fn pooled(&self, ids: &Tensor, mask: &Tensor, additive: &Tensor) -> Result<Tensor> {
        self.encode(ids, mask, additive, &mut Dropping { masks: None, p: self.dropout })
    }

    fn encode(
        &self,
        ids: &Tensor,
        mask: &Tensor,
        additive: &Tensor,
        drop: &mut Dropping<'_>,
    ) -> Result<Tensor> {
        let (rows, len) = ids.dims2()?;
        let longest = self.positions.dim(0)?;
        ensure!(len <= longest, "a text has {len} tokens, the model takes at most {longest}");

        let words = self.words.index_select(&ids.flatten_all()?, 0)?;
        let hidden = words.dim(1)?;
        let places = (self.positions.narrow(0, 0, len)?.broadcast_add(&self.segment.narrow(0, 0, 1)?))?;
        let x = words.reshape((rows, len, hidden))?.broadcast_add(&places)?;
        let mut x = drop.apply(&self.norm.forward(&x.reshape((rows * len, hidden))?)?)?;

        let additive = additive.reshape((rows, 1, 1, len))?;
        for layer in &self.layers {
            x = layer.forward(&x, &additive, (rows, len), drop)?;
        }

        let mask = mask.to_dtype(DType::F32)?;
        let total = x.reshape((rows, len, hidden))?.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)?;
        Ok(total.broadcast_div(&mask.sum_keepdim(1)?)?)
    }

    /// Where the model's parameters are.
    pub fn device(&self) -> &Device {
        self.words.device()
    }
}

/// Dropout while training, nothing while evaluating.
struct Dropping<'a> {
    masks: Option<&'a mut Dropout>,
    p: f64,
}

impl Dropping<'_> {
    fn apply(&mut self, x: &Tensor) -> Result<Tensor> {
        match &mut self.masks {
            Some(masks) => masks.apply(x, self.p),
            None => Ok(x.clone()),
        }
    }
}

/// One transformer layer. Tokens are rows of a matrix, `(rows * len, hidden)`, except inside the attention.
#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    mixed: Linear,
    mixed_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
    heads: usize,
    activation: Activation,
}

impl Layer {
    fn build(config: &Config, at: &str, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        let linear = |name: &str| Linear::build(&format!("{at}.{name}"), get);
        let norm = |name: &str| Norm::build(&format!("{at}.{name}"), config.layer_norm_eps, get);
        Ok(Self {
            query: linear("attention.self.query")?,
            key: linear("attention.self.key")?,
            value: linear("attention.self.value")?,
            mixed: linear("attention.output.dense")?,
            mixed_norm: norm("attention.output.LayerNorm")?,
            inner: linear("intermediate.dense")?,
            outer: linear("output.dense")?,
            outer_norm: norm("output.LayerNorm")?,
            heads: config.num_attention_heads,
            activation: config.hidden_act,
        })
    }

    fn forward(
        &self,
        x: &Tensor,
        additive: &Tensor,
        shape: (usize, usize),
        drop: &mut Dropping<'_>,
    ) -> Result<Tensor> {
        let attended = self.mixed.forward(&self.attend(x, additive, shape)?)?;
        let x = self.mixed_norm.forward(&(x + drop.apply(&attended)?)?)?;
        let inner = self.inner.forward(&x)?;
        let inner = match self.activation {
            Activation::Gelu => inner.gelu_erf()?,
            Activation::GeluNew => inner.gelu()?,
            Activation::Relu => inner.relu()?,
        };
        let outer = self.outer.forward(&inner)?;
        self.outer_norm.forward(&(x + drop.apply(&outer)?)?)
    }

    fn attend(&self, x: &Tensor, additive: &Tensor, (rows, len): (usize, usize)) -> Result<Tensor> {
        let hidden = x.dim(1)?;
        let width = hidden / self.heads;
        let split = |linear: &Linear| -> Result<Tensor> {
            let y = linear.forward(x)?.reshape((rows, len, self.heads, width))?;
            Ok(y.transpose(1, 2)?.contiguous()?)
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let width = u32::try_from(width)?;
        let scores = (query.matmul(&key.t()?)? / f64::from(width).sqrt())?.broadcast_add(additive)?;
        let weights = ops::softmax(&scores, D::Minus1)?;
        Ok(weights.matmul(&value)?.transpose(1, 2)?.reshape((rows * len, hidden))?)
    }
}

/// `x · weightᵀ + bias`.
#[derive(Debug)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn build(at: &str, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        Ok(Self { weight: get(&format!("{at}.weight"))?, bias: get(&format!("{at}.bias"))? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)?)
    }
}

/// A layer norm over the last dimension.
#[derive(Debug)]
struct Norm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl Norm {
    fn build(at: &str, eps: f64, get: &dyn Fn(&str) -> Result<Tensor>) -> Result<Self> {
        Ok(Self { weight: get(&format!("{at}.weight"))?, bias: get(&format!("{at}.bias"))?, eps })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let eps = crate::random::narrow(self.eps);
        let tracked = x.track_op() || self.weight.track_op() || self.bias.track_op();
        Ok(if tracked {
            ops::layer_norm_slow(x, &self.weight, &self.bias, eps)?
        } else {
            ops::layer_norm(x, &self.weight, &self.bias, eps)?
        })
    }
}
