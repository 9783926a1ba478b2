//! The progress bar, and Ctrl-C.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use loaderx_core::convert::{Done, Progress};

use crate::bytes::{grouped, human, quotient};
use crate::output::Output;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether something is being made that has to be cleaned up.
static MAKING: AtomicBool = AtomicBool::new(false);
static EXPLANATION: OnceLock<&str> = OnceLock::new();

/// From now on Ctrl-C asks a running conversion to stop at its next block, which then cleans up after itself; pressing it a
/// second time, or while nothing is being made, ends the program at once.
pub(crate) fn catch_interrupts() {
    // Without a handler Ctrl-C ends the program as usual, and the next run cleans up.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) || !MAKING.load(Ordering::Relaxed) {
            if let Some(text) = EXPLANATION.get() {
                let _ = writeln!(std::io::stderr(), "error: interrupted: {text}");
            }
            std::process::exit(130);
        }
    });
}

/// Says what becomes of the work when Ctrl-C ends the program at once.
pub(crate) fn explain_interrupts(text: &'static str) {
    // The first explanation stays: a command has one.
    let _ = EXPLANATION.set(text);
}

/// Lets the caller notice Ctrl-C by itself, with [`is_interrupted`].
pub(crate) fn hold_interrupts() {
    MAKING.store(true, Ordering::Relaxed);
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Shows how far a conversion is, and stops it on Ctrl-C.
#[derive(Debug)]
pub(crate) struct Bar {
    shown: Option<ProgressBar>,
    started: Instant,
}

impl Bar {
    pub(crate) fn new(output: &Output) -> Self {
        hold_interrupts();
        Self { shown: output.shows_progress().then(ProgressBar::no_length), started: Instant::now() }
    }
}

impl Progress for Bar {
    fn report(&self, done: &Done) -> ControlFlow<()> {
        if let Some(bar) = &self.shown {
            let total = done.total_records.or(done.total_bytes);
            if bar.length() != total {
                let template = if total.is_some() { "{bar:30} {msg}" } else { "{spinner} {msg}" };
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style);
                }
                total.into_iter().for_each(|total| bar.set_length(total));
            }
            bar.set_position(if done.total_records.is_some() { done.records } else { done.bytes });
            bar.set_message(describe(done, self.started.elapsed()));
        }
        if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// How far, of how much, how fast, and how long it will still take.
fn describe(done: &Done, time: Duration) -> String {
    let of = |total: Option<String>| total.map_or(String::new(), |total| format!(" of {total}"));
    let seconds = time.as_secs_f64().max(1e-3);
    let mut text = format!(
        "{}{} records, {}{}, {:.0} records/s, {:.1} MB/s",
        grouped(done.records),
        of(done.total_records.map(grouped)),
        human(done.bytes),
        of(done.total_bytes.map(human)),
        quotient(done.records, 1) / seconds,
        quotient(done.bytes, 1) / 1e6 / seconds,
    );
    let part = match (done.total_records, done.total_bytes) {
        (Some(total), _) => Some(quotient(done.records, total)),
        (None, Some(total)) => Some(quotient(done.bytes, total)),
        (None, None) => None,
    };
    if let Some(part) = part.filter(|&part| part > 0.0) {
        text.push_str(&format!(", {:.0} s left", (seconds / part - seconds).max(0.0)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_totals_rates_and_what_is_left() {
        let mut done = Done::default();
        (done.records, done.bytes) = (1500, 3 << 20);
        let two = Duration::from_secs(2);
        assert_eq!(describe(&done, two), "1,500 records, 3.0 MiB, 750 records/s, 1.6 MB/s");
        (done.total_records, done.total_bytes) = (Some(6000), Some(12 << 20));
        let expected = "1,500 of 6,000 records, 3.0 MiB of 12.0 MiB, 750 records/s, 1.6 MB/s, 6 s left";
        assert_eq!(describe(&done, two), expected);
        (done.total_records, done.total_bytes) = (None, Some(6 << 20));
        assert!(describe(&done, two).ends_with("2 s left"));
    }
}
