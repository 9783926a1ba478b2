//! AdamW whose moments can be saved, which candle_nn's keeps to itself.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, Var};

use crate::parameters::Parameters;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPS: f64 = 1e-8;

/// The optimizer: decoupled weight decay on matrices, none on biases and layer norms.
#[derive(Debug)]
pub struct AdamW {
    slots: BTreeMap<String, Slot>,
    weight_decay: f64,
    /// Updates made so far; the moments' bias correction depends on it.
    updates: i32,
}

#[derive(Debug)]
struct Slot {
    var: Var,
    mean: Tensor,
    square: Tensor,
}

impl AdamW {
    /// An optimizer for the parameters that are trained.
    pub fn new(parameters: &Parameters, weight_decay: f64) -> Result<Self> {
        let mut slots = BTreeMap::new();
        for (name, var) in parameters.trained() {
            let zeros = var.zeros_like()?;
            slots.insert(name.to_owned(), Slot { var: var.clone(), mean: zeros.clone(), square: zeros });
        }
        Ok(Self { slots, weight_decay, updates: 0 })
    }

    /// One update. Returns the gradient's norm before it was scaled down to at most `clip`.
    ///
    /// Every trained parameter must have a gradient: one without is a part of the model that the loss does not
    /// reach, and would stay at its initial value unnoticed.
    pub fn update(&mut self, gradients: &GradStore, learning_rate: f64, clip: f64) -> Result<f64> {
        let mut squares = 0.0;
        for (name, slot) in &self.slots {
            let gradient =
                gradients.get(&slot.var).with_context(|| format!("no gradient reaches `{name}`"))?;
            squares += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
        let norm = squares.sqrt();
        ensure!(norm.is_finite(), "the gradient is not finite; lower the learning rate");
        let scale = if norm > clip { clip / norm } else { 1.0 };

        self.updates += 1;
        let mean_correction = 1.0 / (1.0 - BETA1.powi(self.updates));
        let square_correction = 1.0 / (1.0 - BETA2.powi(self.updates));
        for (name, slot) in &mut self.slots {
            let gradient =
                gradients.get(&slot.var).with_context(|| format!("no gradient reaches `{name}`"))?;
            let gradient = (gradient * scale)?;
            slot.mean = ((&slot.mean * BETA1)? + (&gradient * (1.0 - BETA1))?)?;
            slot.square = ((&slot.square * BETA2)? + (gradient.sqr()? * (1.0 - BETA2))?)?;
            let step = (&slot.mean * (learning_rate * mean_correction))?;
            let step = (step / ((&slot.square * square_correction)?.sqrt()? + EPS)?)?;
            let decay = if slot.var.rank() > 1 { 1.0 - learning_rate * self.weight_decay } else { 1.0 };
            slot.var.set(&((slot.var.as_tensor() * decay)? - step)?)?;
        }
        Ok(norm)
    }

    /// Updates made so far.
    pub fn updates(&self) -> i32 {
        self.updates
    }

    /// Writes both moments of every parameter to a safetensors file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut all = HashMap::new();
        for (name, slot) in &self.slots {
            all.insert(format!("{name}.mean"), slot.mean.clone());
            all.insert(format!("{name}.square"), slot.square.clone());
        }
        candle_core::safetensors::save(&all, path).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Goes on from moments that [`save`](Self::save) wrote after `updates` updates.
    pub fn load(&mut self, path: &Path, updates: i32, device: &Device) -> Result<()> {
        let mut file = candle_core::safetensors::load(path, device)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut take = |key: String, like: &Tensor| -> Result<Tensor> {
            let value =
                file.remove(&key).with_context(|| format!("{} has no tensor `{key}`", path.display()))?;
            ensure!(
                value.dims() == like.dims(),
                "tensor `{key}` of {} has shape {:?}, the model needs {:?}",
                path.display(),
                value.dims(),
                like.dims()
            );
            Ok(value)
        };
        for (name, slot) in &mut self.slots {
            slot.mean = take(format!("{name}.mean"), &slot.mean)?;
            slot.square = take(format!("{name}.square"), &slot.square)?;
        }
        self.updates = updates;
        Ok(())
    }
}
