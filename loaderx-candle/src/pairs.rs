//! Iterators whose items are plain tensors, as candle's own `Batcher` delivers them.

use candle_core::{Result, Tensor};

use crate::batch::TensorBatch;

/// Turns batches into the plain tensors that a loop takes.
///
/// Implemented for every iterator of batches: a [`TensorLoader`](crate::TensorLoader), a pass of it, or
/// `loader.by_ref()` where the loader is to be used again afterwards.
pub trait BatchIterator: Iterator<Item = Result<TensorBatch>> + Sized {
    /// Items of two dense streams, `(inputs, targets)`: the item of `candle_datasets::Batcher::new_r2`.
    fn pairs(self, inputs: impl Into<String>, targets: impl Into<String>) -> Pairs<Self> {
        Pairs { batches: self, inputs: inputs.into(), targets: targets.into() }
    }

    /// Items of one dense stream: the item of `candle_datasets::Batcher::new_r1`.
    fn tensors(self, stream: impl Into<String>) -> Tensors<Self> {
        Tensors { batches: self, stream: stream.into() }
    }
}

impl<I: Iterator<Item = Result<TensorBatch>>> BatchIterator for I {}

/// Batches as `(inputs, targets)`; see [`BatchIterator::pairs`].
#[derive(Clone, Debug)]
pub struct Pairs<I> {
    batches: I,
    inputs: String,
    targets: String,
}

impl<I> Pairs<I> {
    /// What the pairs come from: a loader's state is read here while the loop runs.
    pub fn get_ref(&self) -> &I {
        &self.batches
    }

    /// What the pairs come from, to seek in.
    pub fn get_mut(&mut self) -> &mut I {
        &mut self.batches
    }
}

impl<I: Iterator<Item = Result<TensorBatch>>> Iterator for Pairs<I> {
    type Item = Result<(Tensor, Tensor)>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(batch.and_then(|batch| {
            Ok((batch.tensor(&self.inputs)?.clone(), batch.tensor(&self.targets)?.clone()))
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.batches.size_hint()
    }
}

/// Batches as one tensor each; see [`BatchIterator::tensors`].
#[derive(Clone, Debug)]
pub struct Tensors<I> {
    batches: I,
    stream: String,
}

impl<I> Tensors<I> {
    /// What the tensors come from: a loader's state is read here while the loop runs.
    pub fn get_ref(&self) -> &I {
        &self.batches
    }

    /// What the tensors come from, to seek in.
    pub fn get_mut(&mut self) -> &mut I {
        &mut self.batches
    }
}

impl<I: Iterator<Item = Result<TensorBatch>>> Iterator for Tensors<I> {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.and_then(|batch| batch.tensor(&self.stream).cloned()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.batches.size_hint()
    }
}
