//! The Python peers: one child process that runs bursts on request.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use crate::data::Data;
use crate::harness::{Outcome, System};
use crate::systems::batches;
use crate::work::{Task, Work};

/// The running child.
pub(crate) struct Python {
    pipes: Rc<RefCell<Pipes>>,
    dir: PathBuf,
    child: Child,
}

struct Pipes {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Pipes {
    fn ask(&mut self, request: &str) -> Outcome<String> {
        writeln!(self.requests, "{request}")?;
        self.requests.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.trim().strip_prefix("ok ") {
            Some(answer) => Ok(answer.to_owned()),
            None => Err(format!("the Python peer answered {answer:?} to {request:?}").into()),
        }
    }
}

impl Python {
    /// Makes the virtual environment where it is missing, and starts the child.
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let venv = dir.join("venv");
        let python = venv.join("bin/python");
        if !python.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        }
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "loaderx==0.9.4", "numpy<2.5"]))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/peers.py");
        let mut child =
            Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().ok_or("no pipe to Python")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from Python")?);
        Ok(Self { pipes: Rc::new(RefCell::new(Pipes { requests, answers })), dir: dir.to_path_buf(), child })
    }

    /// Adds the Python systems that can do `work`.
    pub(crate) fn add<'a>(&mut self, systems: &mut Vec<System<'a>>, work: &Work, data: &Data) -> Outcome<()> {
        let store = data.store(work.set, work.codec);
        let kind = match work.task {
            Task::Draw { cyclic: false } => "draw-iid",
            Task::Draw { cyclic: true } => "draw-cyclic",
            Task::Gather if work.set.is_ragged() => "gather-ragged",
            Task::Gather => "gather-dense",
            Task::Load => "load",
            Task::LoadFloat => return Ok(()),
        };
        let mut peers = vec![("loaderx-py", "Python loaderx 0.9.4".to_owned(), 1)];
        if work.task == Task::Load {
            peers =
                [1, 2, 4].map(|n| ("loaderx-py", format!("Python loaderx 0.9.4, {n} workers"), n)).to_vec();
        }
        if matches!(work.task, Task::Load | Task::Gather) && work.codec == "raw" {
            peers.push(("numpy", "NumPy on a mapped .npy".to_owned(), 1));
        }
        let indices = self.dir.join("indices.json");
        if work.task == Task::Gather {
            let len = loaderx_core::Store::open(&store)?.len();
            std::fs::write(&indices, serde_json::to_string(&batches(len, work.batch))?)?;
        }
        for (system, name, threads) in peers {
            let request = serde_json::json!({
                "system": system, "kind": kind, "store": store, "labels": data.labels(), "batch": work.batch,
                "threads": threads, "indices": indices, "copy": self.dir.join("python-copy"),
            });
            let id = self.pipes.borrow_mut().ask(&format!("make {request}"))?;
            let pipes = Rc::clone(&self.pipes);
            systems.push(System {
                name,
                threads,
                burst: Box::new(move |count| {
                    Ok(pipes.borrow_mut().ask(&format!("run {id} {count}"))?.parse()?)
                }),
            });
        }
        Ok(())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The child ends by itself at the end of its input; this is for one that is stuck.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}
