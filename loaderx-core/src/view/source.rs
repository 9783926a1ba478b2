use std::sync::Arc;

use super::Column;
use crate::buffer::{Allocator, Vecs};
use crate::error::Result;

/// What is asked of a [`Source`]: these records, for this step of this seed, into this memory.
///
/// ```
/// use loaderx_core::buffer::Pool;
/// use loaderx_core::view::Request;
///
/// let pool = Pool::new();
/// let request = Request::new(&[3, 1, 4]).at(7, 1000).memory(&pool).threads(2);
/// assert_eq!((request.seed, request.step), (7, 1000));
/// ```
///
/// A rank's part of a batch says where in the global batch it begins, so that record maps draw the random numbers
/// that a single rank would draw: [`Request::from_position`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Indices of the records, in the order of the batch.
    pub indices: &'a [u64],
    /// Keys the random numbers of a record map, together with `step` and the position in the batch.
    pub seed: u64,
    /// The step that the batch is for.
    pub step: u64,
    /// The position of the first record in the step's batch; not 0 for a rank's part of a global one.
    pub first_position: usize,
    /// Where the batch's memory comes from.
    pub memory: &'a dyn Allocator,
    /// Threads that may work on this one batch; 1 where several batches are made at a time.
    pub threads: usize,
}

impl<'a> Request<'a> {
    /// Asks for the records at `indices` in typed vectors, made by one thread, for step 0 of seed 0.
    #[must_use]
    pub fn new(indices: &'a [u64]) -> Self {
        Self { indices, seed: 0, step: 0, first_position: 0, memory: &Vecs, threads: 1 }
    }

    /// For step `step` of seed `seed`.
    #[must_use]
    pub fn at(mut self, seed: u64, step: u64) -> Self {
        self.seed = seed;
        self.step = step;
        self
    }

    /// For the part of the step's batch that begins at position `first`.
    #[must_use]
    pub fn from_position(mut self, first: usize) -> Self {
        self.first_position = first;
        self
    }

    /// Into memory from `allocator`.
    #[must_use]
    pub fn memory(mut self, allocator: &'a dyn Allocator) -> Self {
        self.memory = allocator;
        self
    }

    /// With up to `threads` threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

/// Something that batches are gathered from: a view of a store, or a view with a conversion, a padding or a map.
///
/// A gather is a pure function of the stored data and the request's indices, seed and step. Neither the allocator
/// nor the number of threads changes a byte of the batch.
pub trait Source: Send + Sync {
    /// Records; every index of a request is below it.
    fn len(&self) -> u64;

    /// Whether there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gathers the records of `request`.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Source::len`] or stored data are damaged.
    fn gather(&self, request: &Request<'_>) -> Result<Column>;

    /// Bytes that a batch of `indices` will hold, or a bound of it; what a loader's cap in bytes counts.
    ///
    /// # Errors
    ///
    /// As [`Source::gather`].
    fn batch_bytes(&self, indices: &[u64]) -> Result<u64>;

    /// Says that these records will be gathered soon. Does nothing by default.
    fn advise(&self, indices: &[u64]) {
        let _ = indices;
    }

    /// A text that names the element type, the shape and every conversion, but not the number of records: what
    /// decides a batch's bytes besides the stored data. A loader's saved state carries it.
    fn describe(&self) -> String;
}

macro_rules! forward {
    ($($holder:ident),+) => {$(
        impl<S: Source + ?Sized> Source for $holder<S> {
            fn len(&self) -> u64 {
                (**self).len()
            }

            fn gather(&self, request: &Request<'_>) -> Result<Column> {
                (**self).gather(request)
            }

            fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
                (**self).batch_bytes(indices)
            }

            fn advise(&self, indices: &[u64]) {
                (**self).advise(indices);
            }

            fn describe(&self) -> String {
                (**self).describe()
            }
        }
    )+};
}

forward!(Arc, Box);
