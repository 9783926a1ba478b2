//! What the user sees while the network trains.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use loaderx_core::loader::Stats;

/// Shows step, loss, images a second and the share of the time that was spent waiting for data.
///
/// A bar where there is a terminal, and a line every so many steps in any case.
pub struct Progress {
    bar: ProgressBar,
    log_every: u64,
    began: Instant,
    first: Stats,
}

impl Progress {
    /// Begins at the loader's `stats`, at step `done` of `steps`.
    pub fn new(steps: u64, done: u64, log_every: u64, stats: Stats) -> Self {
        let bar = ProgressBar::new(steps).with_position(done);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} step {pos}/{len}  {msg}  {elapsed} of {duration}")
        {
            bar.set_style(style);
        }
        Self { bar, log_every, began: Instant::now(), first: stats }
    }

    /// Reports a finished step.
    pub fn step(&self, done: u64, loss: f32, stats: &Stats) {
        let seconds = self.began.elapsed().as_secs_f64();
        let images = (stats.records - self.first.records) as f64 / seconds;
        let waited = (stats.waiting_for_data - self.first.waiting_for_data).as_secs_f64();
        let waiting = 100.0 * waited / seconds;
        self.bar.set_position(done);
        self.bar
            .set_message(format!("loss {loss:.4}  {images:.0} images/s  {waiting:.1} % waiting for data"));
        if done.is_multiple_of(self.log_every) {
            self.bar.suspend(|| {
                println!(
                    "step {done:6}  loss {loss:.6}  {images:6.0} images/s  {waiting:4.1} % waiting for data"
                );
            });
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
