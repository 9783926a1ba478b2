//! Python loaderx 0.9.4 as the other side of interoperability tests.
//!
//! The package is installed once, from the package index, into a virtual environment below the target
//! folder. Where that is impossible (no Python 3, no pip, no network) the tests are skipped and say so.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const PACKAGE: &str = "loaderx==0.9.4";

/// A running Python that answers requests; see `tests/python/peer.py`.
#[derive(Debug)]
pub struct Python {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Python {
    /// Starts it; `None`, with the reason printed, where the package cannot be had. `scratch` is a folder that
    /// outlives the test (`CARGO_TARGET_TMPDIR`).
    ///
    /// With `LOADERX_REQUIRE_PYTHON` in the environment a missing package is a failure.
    #[must_use]
    pub fn start(scratch: &Path) -> Option<Self> {
        match install(scratch) {
            Ok(interpreter) => Some(Self::spawn(&interpreter)),
            Err(reason) => {
                assert!(std::env::var_os("LOADERX_REQUIRE_PYTHON").is_none(), "{reason}");
                println!("SKIPPED: no {PACKAGE} to compare with: {reason}");
                None
            }
        }
    }

    fn spawn(interpreter: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/peer.py");
        let mut child = Command::new(interpreter)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, requests, answers }
    }

    /// Sends a request; the answer's value, or Python's error.
    ///
    /// # Errors
    ///
    /// What Python raised.
    pub fn request(&mut self, request: &Value) -> Result<Value, String> {
        writeln!(self.requests, "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {error}: {line:?}"));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }

    /// Every record of the store in `path`.
    pub fn read(&mut self, path: &Path) -> Vec<Vec<u8>> {
        records(&self.request(&json!({"do": "read", "path": path})).unwrap())
    }

    /// Appends with this codec; the index of the first.
    pub fn append(&mut self, path: &Path, records: &[Vec<u8>], codec: &str) -> u64 {
        let request = json!({"do": "append", "path": path, "records": texts(records), "codec": codec});
        self.request(&request).unwrap().as_u64().unwrap()
    }

    /// Deletes.
    pub fn delete(&mut self, path: &Path, indices: &[u64]) {
        self.request(&json!({"do": "delete", "path": path, "indices": indices})).unwrap();
    }

    /// Compacts.
    pub fn compact(&mut self, path: &Path) {
        self.request(&json!({"do": "compact", "path": path})).unwrap();
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // Its input ends with this handle; whoever drops it in a panic need not wait for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records as requests carry them.
#[must_use]
pub fn texts(records: &[Vec<u8>]) -> Vec<String> {
    records.iter().map(|record| record.iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

/// Records as answers carry them.
#[must_use]
pub fn records(texts: &Value) -> Vec<Vec<u8>> {
    let texts = texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    texts
        .map(|text| {
            (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
        })
        .collect()
}

/// The interpreter of an environment that has the package, made if need be.
fn install(scratch: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(scratch).map_err(|error| error.to_string())?;
    // Tests run in processes of their own; the first installs, the others wait for it.
    let lock = fs::File::create(scratch.join("python-loaderx.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let environment = scratch.join("python-loaderx-0.9.4");
    let interpreter = environment.join("bin/python");
    let installed = environment.join("installed");
    if !installed.exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
        run(Command::new(&interpreter).args(["-c", "import loaderx.zrecord"]))?;
        fs::write(&installed, []).map_err(|error| error.to_string())?;
    }
    Ok(interpreter)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}: {}", output.status, text.trim().lines().last().unwrap_or_default()))
}
