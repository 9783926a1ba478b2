//! Child processes that work on a store: the program `store_child`.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The content of record `index` in stores that `store_child grow` writes and `store_child watch` reads.
#[must_use]
pub fn record_of(index: u64) -> Vec<u8> {
    crate::random::Random::new(index).record(1 + (index % 257) as usize)
}

/// A running child whose standard output is read line by line. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Starts `program` with these arguments.
    pub fn start<S: AsRef<std::ffi::OsStr>>(
        program: impl AsRef<Path>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self::spawn(Command::new(program.as_ref()).args(arguments))
    }

    /// Starts this command.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line; empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it with SIGKILL and gives the lines that it had still written.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        rest.lines().map(str::to_owned).collect()
    }

    /// Closes its input, waits for its end and gives the lines that it had still written. Panics if it failed.
    pub fn finish(mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest.lines().map(str::to_owned).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
