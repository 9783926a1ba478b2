//! What is printed, and how: for people on a terminal, as JSON by option, never with colour in a pipe.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use loaderx_core::{Error, ErrorKind};
use serde_json::{Value, json};

/// The code for faults that a check has found.
pub(crate) const FAULTS: u8 = 1;
/// The code for what could not be done.
const FAILED: u8 = 2;
/// The code of a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library says why.
    Core(Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// Where and in which form results go.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    colour: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, quiet, colour }
    }

    /// Whether results are wanted as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a progress bar has somebody to look at it.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// Prints a line for people; nothing when JSON is wanted.
    pub(crate) fn line(&self, text: impl fmt::Display) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Prints a JSON value; nothing when text for people is wanted.
    pub(crate) fn value(&self, value: &Value) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        writeln!(io::stdout().lock(), "{value:#}")
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        io::stdout().lock().write_all(bytes)
    }

    /// Prints why a command failed and gives its exit code.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        let error = match failure {
            // `head` and the like have read enough.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Output(error) => {
                self.complain(&format!("the output cannot be written: {error}"));
                return ExitCode::from(FAILED);
            }
            Failure::Core(error) => error,
        };
        if self.json {
            let report = json!({ "error": {
                "message": error.to_string(),
                "path": error.path().map(|path| path.display().to_string()),
                "record": error.record(),
                "hint": error.hint(),
            }});
            // Nothing is left to do when even this fails.
            let _ = writeln!(io::stdout().lock(), "{report:#}");
        }
        self.complain(&error.to_string());
        ExitCode::from(if error.kind() == ErrorKind::Cancelled { INTERRUPTED } else { FAILED })
    }

    fn complain(&self, text: &str) {
        let (start, end) = if self.colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(io::stderr().lock(), "{start}error:{end} {text}");
    }
}
