//! Sources for tests of the loader: columns that tell which record they came from, and sources that misbehave.

use std::sync::Arc;
use std::time::Duration;

use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{Batch, Buffer, DenseBatch, Error, Result};

/// A source without a store: record `i` is the number `i`, scaled.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Records.
    pub len: u64,
    /// What each index is multiplied by.
    pub scale: u64,
}

impl Numbers {
    /// `len` records: 0, 1, 2, ...
    pub fn new(len: u64) -> Self {
        Self { len, scale: 1 }
    }
}

impl Source for Numbers {
    fn len(&self) -> u64 {
        self.len
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        let values: Vec<u64> = request.indices.iter().map(|index| index * self.scale).collect();
        let shape = vec![values.len()];
        Ok(Column::Dense(DenseBatch::from_parts(Buffer::from(values), shape)?))
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok(indices.len() as u64 * 8)
    }

    fn describe(&self) -> String {
        format!("numbers * {}", self.scale)
    }
}

/// What a [`Faulty`] source does before it gathers.
pub type Fault = Arc<dyn Fn(&Request<'_>) -> Result<()> + Send + Sync>;

/// [`Numbers`] with a fault: an error, a panic, a delay.
#[derive(Clone)]
pub struct Faulty {
    numbers: Numbers,
    fault: Fault,
}

impl Faulty {
    /// Calls `fault` before each gather.
    pub fn new(len: u64, fault: impl Fn(&Request<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { numbers: Numbers::new(len), fault: Arc::new(fault) }
    }

    /// Sleeps before each gather.
    pub fn slow(len: u64, time: Duration) -> Self {
        Self::new(len, move |_| {
            std::thread::sleep(time);
            Ok(())
        })
    }

    /// Reports these records as damaged.
    pub fn damaged(len: u64, records: &'static [u64]) -> Self {
        Self::new(len, move |request| match request.indices.iter().find(|index| records.contains(index)) {
            Some(&index) => Err(Error::corrupt("a flipped bit").at_path("0.zr").for_record(index)),
            None => Ok(()),
        })
    }
}

impl Source for Faulty {
    fn len(&self) -> u64 {
        self.numbers.len
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        (self.fault)(request)?;
        self.numbers.gather(request)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        self.numbers.batch_bytes(indices)
    }

    fn describe(&self) -> String {
        self.numbers.describe()
    }
}

/// The numbers in the column `name` of a batch.
pub fn numbers(batch: &Batch, name: &str) -> Vec<u64> {
    batch.column(name).unwrap().clone().into_dense().unwrap().into_vec().unwrap().0
}

/// The threads of this process.
pub fn threads() -> usize {
    status("Threads:")
}

/// Anonymous memory of this process, in KiB.
pub fn anonymous_kib() -> usize {
    status("RssAnon:")
}

fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
