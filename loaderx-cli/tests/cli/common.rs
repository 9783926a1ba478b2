//! Runs the program and looks at what it prints and leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The path of one of the import tests' inputs.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/import").join(name)
}

/// The program with these arguments, in the directory.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loaderx"));
    command.current_dir(dir).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

/// Runs it, which must succeed, and gives what it printed.
pub(crate) fn prints(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
    assert!(errors.is_empty(), "{args:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\x1b'), "colour in a pipe: {text:?}");
    text
}

/// Runs it with `--json`, which must succeed, and gives the value that it printed.
pub(crate) fn json(dir: &Path, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&prints(dir, &args)).unwrap()
}

/// Runs it, which must fail with code 2, and gives what it complained of.
pub(crate) fn complains(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("error: "), "{errors:?}");
    assert!(!errors.contains('\x1b'), "colour in a pipe: {errors:?}");
    errors
}

/// The names in a directory, hidden ones included, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
