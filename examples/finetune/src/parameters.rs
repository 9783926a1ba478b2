//! The named parameters of the classifier: their shapes, initial values, and safetensors files.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use candle_core::{DType, Device, Tensor, Var};

use crate::config::Config;
use crate::random::{Random, digest, narrow};

/// Which parameters are trained; the others keep their values and cost no backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Train {
    /// Every parameter.
    All,
    /// The last so many layers and the classification head.
    LastLayers(usize),
}

/// All parameters of a classifier, by their name in a safetensors file.
///
/// Ordered by name, so that every walk over them (the optimizer's, a checkpoint's) is the same in each run.
#[derive(Debug)]
pub struct Parameters {
    trained: BTreeMap<String, Var>,
    fixed: BTreeMap<String, Tensor>,
}

/// What a parameter holds before anything is loaded.
#[derive(Clone, Copy)]
enum Init {
    Zeros,
    Ones,
    /// Normal with BERT's standard deviation of 0.02.
    Normal,
}

impl Parameters {
    /// Seeded initial values for a whole classifier.
    pub fn new(config: &Config, classes: usize, train: Train, seed: u64, device: &Device) -> Result<Self> {
        ensure!(classes >= 2, "a classifier needs at least 2 classes, the data has {classes}");
        if let Train::LastLayers(layers) = train {
            ensure!(
                layers <= config.num_hidden_layers,
                "{layers} layers are to be trained, the model has {}",
                config.num_hidden_layers
            );
        }
        let mut parameters = Self { trained: BTreeMap::new(), fixed: BTreeMap::new() };
        for (name, shape, init) in layout(config, classes) {
            let count = shape.iter().product();
            let values = match init {
                Init::Zeros => vec![0.0; count],
                Init::Ones => vec![1.0; count],
                Init::Normal => {
                    let mut random = Random::keyed(seed, &[digest(name.as_bytes())]);
                    (0..count).map(|_| narrow(random.normal() * 0.02)).collect()
                }
            };
            let value = Tensor::from_vec(values, shape, device)?;
            if is_trained(&name, train, config) {
                parameters.trained.insert(name, Var::from_tensor(&value)?);
            } else {
                parameters.fixed.insert(name, value);
            }
        }
        Ok(parameters)
    }

    /// Loads a pre-trained encoder. The head keeps its initial values when the file has none; anything else
    /// that is missing, or of another shape, is an error. Files that name the encoder `bert.…` are understood.
    pub fn load_pretrained(&mut self, path: &Path, device: &Device) -> Result<()> {
        let mut file = read(path, device)?;
        for name in self.names() {
            let found = file.remove(&name).or_else(|| file.remove(&format!("bert.{name}")));
            match found {
                Some(value) => self.set(&name, &value).with_context(|| format!("in {}", path.display()))?,
                None if name.starts_with(HEAD) => {}
                None => bail!("{} has no tensor `{name}`; is it a BERT encoder?", path.display()),
            }
        }
        Ok(())
    }

    /// Loads every parameter from a file that [`save`](Self::save) wrote.
    pub fn load(&mut self, path: &Path, device: &Device) -> Result<()> {
        let mut file = read(path, device)?;
        for name in self.names() {
            let value =
                file.remove(&name).with_context(|| format!("{} has no tensor `{name}`", path.display()))?;
            self.set(&name, &value).with_context(|| format!("in {}", path.display()))?;
        }
        Ok(())
    }

    /// Writes every parameter to a safetensors file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let all: HashMap<&str, Tensor> =
            self.names_and_values().map(|(name, value)| (name, value.clone())).collect();
        candle_core::safetensors::save(&all, path).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The parameters that are trained, in the order of their names.
    pub fn trained(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.trained.iter().map(|(name, var)| (name.as_str(), var))
    }

    /// How many numbers are trained, and how many there are.
    pub fn counts(&self) -> (usize, usize) {
        let trained = self.trained.values().map(|var| var.elem_count()).sum::<usize>();
        (trained, trained + self.fixed.values().map(Tensor::elem_count).sum::<usize>())
    }

    /// A parameter for a forward pass that will be differentiated.
    pub(crate) fn tracked(&self, name: &str) -> Result<Tensor> {
        self.value(name).cloned()
    }

    /// The same memory without the graph: it follows every later update and records no history.
    pub(crate) fn untracked(&self, name: &str) -> Result<Tensor> {
        Ok(self.value(name)?.detach())
    }

    fn value(&self, name: &str) -> Result<&Tensor> {
        let trained = self.trained.get(name).map(Var::as_tensor);
        trained
            .or_else(|| self.fixed.get(name))
            .with_context(|| format!("the model has no parameter `{name}`"))
    }

    fn names(&self) -> Vec<String> {
        self.names_and_values().map(|(name, _)| name.to_owned()).collect()
    }

    fn names_and_values(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let trained = self.trained.iter().map(|(name, var)| (name.as_str(), var.as_tensor()));
        trained.chain(self.fixed.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn set(&mut self, name: &str, value: &Tensor) -> Result<()> {
        let value = value.to_dtype(DType::F32)?;
        let shape = self.value(name)?.dims();
        ensure!(
            value.dims() == shape,
            "tensor `{name}` has shape {:?}, the model needs {shape:?}",
            value.dims()
        );
        match self.trained.get(name) {
            Some(var) => var.set(&value)?,
            None => {
                self.fixed.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }
}

const HEAD: &str = "classifier.";

fn read(path: &Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    candle_core::safetensors::load(path, device).with_context(|| format!("cannot read {}", path.display()))
}

fn is_trained(name: &str, train: Train, config: &Config) -> bool {
    let Train::LastLayers(layers) = train else { return true };
    if name.starts_with(HEAD) {
        return true;
    }
    let first = config.num_hidden_layers - layers;
    (first..config.num_hidden_layers).any(|layer| name.starts_with(&format!("encoder.layer.{layer}.")))
}

/// Every parameter's name, shape and initial value.
fn layout(config: &Config, classes: usize) -> Vec<(String, Vec<usize>, Init)> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let mut all = Vec::new();
    let mut add = |name: String, shape: Vec<usize>, init| all.push((name, shape, init));
    let tables = [
        ("word", config.vocab_size),
        ("position", config.max_position_embeddings),
        ("token_type", config.type_vocab_size),
    ];
    for (table, rows) in tables {
        add(format!("embeddings.{table}_embeddings.weight"), vec![rows, hidden], Init::Normal);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    let mut linears = vec![("classifier".to_owned(), hidden, classes)];
    for layer in 0..config.num_hidden_layers {
        let at = format!("encoder.layer.{layer}");
        for part in ["query", "key", "value"] {
            linears.push((format!("{at}.attention.self.{part}"), hidden, hidden));
        }
        linears.push((format!("{at}.attention.output.dense"), hidden, hidden));
        linears.push((format!("{at}.intermediate.dense"), hidden, inner));
        linears.push((format!("{at}.output.dense"), inner, hidden));
        norms.push(format!("{at}.attention.output.LayerNorm"));
        norms.push(format!("{at}.output.LayerNorm"));
    }
    for (name, inputs, outputs) in linears {
        add(format!("{name}.weight"), vec![outputs, inputs], Init::Normal);
        add(format!("{name}.bias"), vec![outputs], Init::Zeros);
    }
    for name in norms {
        add(format!("{name}.weight"), vec![hidden], Init::Ones);
        add(format!("{name}.bias"), vec![hidden], Init::Zeros);
    }
    all
}
