//! The progress bar, and Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use loaderx_core::convert::{Done, Progress};

use crate::output::Output;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks the running conversion to stop at its next block, which then cleans up after itself;
/// pressing it a second time ends the program at once.
pub(crate) fn catch_interrupts() {
    // Without a handler Ctrl-C ends the program as usual, and the next run cleans up.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Shows how far a conversion is, and stops it on Ctrl-C.
#[derive(Debug)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new(output: &Output) -> Self {
        Self(output.shows_progress().then(ProgressBar::no_length))
    }
}

impl Progress for Bar {
    fn report(&self, done: &Done) -> ControlFlow<()> {
        if let Some(bar) = &self.0 {
            let template = match (done.total_records, done.total_bytes) {
                (Some(total), _) => {
                    bar.set_length(total);
                    "{bar:30} {human_pos} of {human_len} records, {per_sec}, {msg}, {eta} left"
                }
                (None, _) => "{spinner} {human_pos} records, {per_sec}, {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(crate::bytes::human(done.bytes));
            bar.set_position(done.records);
        }
        if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
