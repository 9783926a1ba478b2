use std::time::{Duration, Instant};

use crate::rounds_wanted;

/// One piece of work, done by several variants that run in turn.
pub struct Work<'a> {
    name: String,
    bytes: u64,
    records: u64,
    variants: Vec<(String, Box<dyn FnMut() + 'a>)>,
}

/// What was measured of one variant.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The variant.
    pub name: String,
    /// Median time of one run.
    pub median: Duration,
    /// The tenth fastest of a hundred runs.
    pub p10: Duration,
    /// The tenth slowest of a hundred runs.
    pub p90: Duration,
    /// Speed as a ratio to the first variant: the median over the rounds of (its time / this one's time).
    pub ratio: f64,
}

impl<'a> Work<'a> {
    /// Work that touches `bytes` and `records` in each run.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: u64, records: u64) -> Self {
        Self { name: name.into(), bytes, records, variants: Vec::new() }
    }

    /// Adds a variant; the first one is the reference that ratios are taken to.
    #[must_use]
    pub fn variant(mut self, name: impl Into<String>, run: impl FnMut() + 'a) -> Self {
        self.variants.push((name.into(), Box::new(run)));
        self
    }

    /// Runs the variants in turn and prints a row for each.
    pub fn run(mut self) -> Vec<Measured> {
        let rounds = rounds_wanted();
        let mut times = vec![Vec::with_capacity(rounds); self.variants.len()];
        for (_, run) in &mut self.variants {
            run();
        }
        for _ in 0..rounds {
            for ((_, run), times) in self.variants.iter_mut().zip(&mut times) {
                let start = Instant::now();
                run();
                times.push(start.elapsed());
            }
        }
        let reference = times.first().cloned().unwrap_or_default();
        let measured: Vec<Measured> = self
            .variants
            .iter()
            .zip(times)
            .map(|((name, _), times)| {
                let mut ratios: Vec<f64> = reference
                    .iter()
                    .zip(&times)
                    .map(|(a, b)| a.as_secs_f64() / b.as_secs_f64().max(1e-12))
                    .collect();
                ratios.sort_by(f64::total_cmp);
                let mut sorted = times;
                sorted.sort();
                let at = |part: usize| sorted[(sorted.len() - 1) * part / 100];
                Measured {
                    name: name.clone(),
                    median: at(50),
                    p10: at(10),
                    p90: at(90),
                    ratio: ratios[ratios.len() / 2],
                }
            })
            .collect();
        self.print(&measured);
        measured
    }

    fn print(&self, measured: &[Measured]) {
        println!("{}", self.name);
        for row in measured {
            let seconds = row.median.as_secs_f64().max(1e-12);
            println!(
                "  {:<34} {:>10.1} us  [{:>9.1} .. {:>9.1}]  {:>9.0} MB/s  {:>12.0} records/s  {:>6.2}x",
                row.name,
                seconds * 1e6,
                row.p10.as_secs_f64() * 1e6,
                row.p90.as_secs_f64() * 1e6,
                self.bytes as f64 / seconds / 1e6,
                self.records as f64 / seconds,
                row.ratio
            );
        }
    }
}
