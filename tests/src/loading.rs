//! Sources for tests of the loader: columns that tell which record they came from, and sources that misbehave.

use std::sync::Arc;
use std::time::Duration;

use loaderx_core::sampler::Cyclic;
use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{Batch, Buffer, Codec, DType, DenseBatch, DenseWriter, Error, Loader, Result};

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

/// What a long run looked like from outside, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Steps delivered so far.
    pub step: u64,
    /// Anonymous memory, in KiB.
    pub anonymous_kib: usize,
    /// Threads of the process.
    pub threads: usize,
}

/// Runs `steps` steps over a small store with `workers` workers and samples the process `samples` times.
///
/// Every thousandth step also saves and resumes the state, and every ten thousandth evaluates.
pub fn soak(steps: u64, workers: usize, samples: u64) -> Vec<Sample> {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("x"), DType::U8, &[28, 28], Codec::Raw).unwrap();
    writer.append((0..100 * 784).map(|i| i as u8).collect::<Vec<u8>>()).unwrap();
    let mut loader = Loader::builder()
        .stream("image", writer.finish().unwrap())
        .stream("label", Numbers::new(100))
        .sampler(Cyclic::new(100, 16, 3).unwrap())
        .workers(workers)
        .build()
        .unwrap();
    let every = steps.div_ceil(samples);
    let mut taken = Vec::new();
    for step in 0..steps {
        let batch = loader.next().unwrap().unwrap();
        assert_eq!(batch.step(), step);
        let pixels = batch.column("image").unwrap().clone().into_dense().unwrap();
        let first = batch.indices()[0] * 784;
        assert_eq!(pixels.as_slice::<u8>().unwrap()[1], (first + 1) as u8);
        if step % 1000 == 999 {
            let state = loader.state();
            loader.seek(0);
            loader.resume(&state).unwrap();
        }
        if step % 10_000 == 9_999 {
            assert_eq!(loader.pass(30).unwrap().map(|batch| batch.unwrap().records()).sum::<usize>(), 100);
        }
        if (step + 1) % every == 0 {
            taken.push(Sample { step: step + 1, anonymous_kib: anonymous_kib(), threads: threads() });
        }
    }
    taken
}

/// The threads of this process.
pub fn threads() -> usize {
    status("Threads:")
}

/// The threads that the calling test is made of: itself, those of a loader, and unnamed ones that it has started, which
/// inherit its name. The test harness starts and ends threads of other tests meanwhile.
pub fn threads_of_this_test() -> usize {
    let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| *name == own || name.starts_with("loaderx-")).count()
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
