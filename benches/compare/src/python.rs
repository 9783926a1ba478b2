//! The Python peers: a child process for each version of the package, which runs bursts on request.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use serde_json::json;

use crate::data::Data;
use crate::harness::{Outcome, System};
use crate::systems::batches;
use crate::work::{Task, Work};

/// The running children.
pub(crate) struct Python {
    first: Peer,
    /// Python loaderx 2.8.19; `None` where no Python is new enough.
    second: Option<Peer>,
    /// LMDB and Lance; there with the second.
    third: Option<Peer>,
    dir: PathBuf,
}

struct Peer {
    pipes: Rc<RefCell<Pipes>>,
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

impl Peer {
    /// Makes the virtual environment where it is missing, installs `packages` and starts the child.
    fn start(interpreter: &str, venv: &Path, packages: &[&str], script: &str) -> Outcome<Self> {
        let python = venv.join("bin/python");
        if !python.exists() {
            run(Command::new(interpreter).args(["-m", "venv"]).arg(venv))?;
        }
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
        let mut child =
            Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().ok_or("no pipe to Python")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from Python")?);
        Ok(Self { pipes: Rc::new(RefCell::new(Pipes { requests, answers })), child })
    }

    fn ask(&self, verb: &str, request: &serde_json::Value) -> Outcome<String> {
        signal("-CONT", self.child.id())?;
        self.pipes.borrow_mut().ask(&format!("{verb} {request}"))
    }

    /// A system that this child makes of `request`.
    fn system<'a>(&self, name: String, threads: usize, request: &serde_json::Value) -> Outcome<System<'a>> {
        let id = self.ask("make", request)?;
        let pipes = Rc::clone(&self.pipes);
        let process = self.child.id();
        Ok(System {
            name,
            threads,
            // Its workers would go on preparing batches in other systems' turns.
            burst: Box::new(move |count| {
                signal("-CONT", process)?;
                let answer = pipes.borrow_mut().ask(&format!("run {id} {count}"));
                signal("-STOP", process)?;
                Ok(answer?.parse()?)
            }),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The child ends by itself at the end of its input; this is for one that is stuck.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Python {
    /// Starts the children, whose environments are kept in `dir`.
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let packages = ["loaderx==0.9.4", "numpy<2.5"];
        let first = Peer::start("python3", &dir.join("venv"), &packages, "peers.py")?;
        let recent = recent();
        let start = |venv: &str, packages: &[&str], script: &str| {
            recent.map(|python| Peer::start(python, &dir.join(venv), packages, script)).transpose()
        };
        let second = start("venv-2", &["loaderx==2.8.19"], "peers_2.py")?;
        let third = start("venv-3", &["lmdb==3.0.0", "pylance==14.0.2", "numpy"], "peers_3.py")?;
        Ok(Self { first, second, third, dir: dir.to_path_buf() })
    }

    /// Whether there is a Python that runs loaderx 2.8.19.
    pub(crate) fn has_second(&self) -> bool {
        self.second.is_some()
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
        let indices = self.dir.join("indices.json");
        if work.task == Task::Gather {
            let len = data.records(work.set)?;
            std::fs::write(&indices, serde_json::to_string(&batches(len, work.batch))?)?;
        }
        let request = |system: &str, kind: &str, store: &Path, threads: usize| {
            json!({
                "system": system, "kind": kind, "store": store, "labels": data.labels(), "batch": work.batch,
                "codec": work.codec, "threads": threads, "indices": indices,
                "copy": self.dir.join("python-copy"),
            })
        };
        let workers: &[usize] = if work.task == Task::Load { &[1, 2, 4] } else { &[1] };
        let named = |name: &str, threads: usize| match work.task {
            Task::Load => format!("{name}, {threads} workers"),
            _ => name.to_owned(),
        };
        for &threads in workers {
            let name = named("Python loaderx 0.9.4", threads);
            // A gather of its own uses every core.
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let used = if work.task == Task::Gather { cores } else { threads };
            systems.push(self.first.system(name, used, &request("loaderx-py", kind, &store, threads))?);
        }
        if matches!(work.task, Task::Load | Task::Gather) && work.codec == "raw" {
            let name = "NumPy on a mapped .npy".to_owned();
            systems.push(self.first.system(name, 1, &request("numpy", kind, &store, 1))?);
        }
        if let Some(third) = &self.third
            && work.task == Task::Gather
            && work.codec == "raw"
            && !work.set.is_ragged()
        {
            self.first.ask("make", &request("numpy", "export", &store, 1))?;
            for (name, system) in [("LMDB, through Python", "lmdb"), ("Lance, through Python", "lance")] {
                systems.push(third.system(name.to_owned(), 1, &request(system, kind, &store, 1))?);
            }
        }
        // Its dictionaries have another form, and its ragged records carry shapes.
        if let Some(second) = &self.second
            && !work.set.is_ragged()
            && work.codec != "zstd_dict"
        {
            if !matches!(work.task, Task::Draw { .. }) {
                for store in [&store, &data.labels()] {
                    self.first.ask("make", &request("numpy", "export", store, 1))?;
                }
            }
            for &threads in workers {
                let name = named("Python loaderx 2.8.19", threads);
                systems.push(second.system(name, threads, &request("loaderx-2", kind, &store, threads))?);
            }
        }
        Ok(())
    }
}

/// A Python of at least 3.12, which NumPy 2.5 needs.
fn recent() -> Option<&'static str> {
    ["python3.14", "python3.13", "python3.12"].into_iter().find(|python| {
        let there = Command::new(python).arg("--version").output();
        there.is_ok_and(|output| output.status.success())
    })
}

/// Sends a signal to one of the children.
fn signal(signal: &str, process: u32) -> Outcome<()> {
    run(Command::new("kill").args([signal, &process.to_string()]))
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}
