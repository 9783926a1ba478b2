//! A small MNIST and runs of the program over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A folder with four IDX files, and room for stores and checkpoints.
pub struct Lab {
    dir: TempDir,
}

pub fn idx(sides: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(sides.len()).unwrap()];
    file.extend(sides.iter().flat_map(|side| side.to_be_bytes()));
    file.extend(bytes);
    file
}

/// Images that show their label as a bright row, under some noise.
fn images(count: usize) -> (Vec<u8>, Vec<u8>) {
    let labels: Vec<u8> = (0..count).map(|i| (i * 7 % 10) as u8).collect();
    let pixels = (0..count).flat_map(|i| {
        let row = usize::from(labels[i]) * 2 + 4;
        (0..28 * 28).map(move |at| if at / 28 == row { 250 } else { ((at * 31 + i * 17) % 90) as u8 })
    });
    (pixels.collect(), labels)
}

impl Lab {
    pub fn new() -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(lab.path("idx")).unwrap();
        for (name, count) in [("train", 200), ("t10k", 50)] {
            let (pixels, labels) = images(count);
            let count = u32::try_from(count).unwrap();
            lab.write(&format!("{name}-images-idx3-ubyte"), &idx(&[count, 28, 28], &pixels));
            lab.write(&format!("{name}-labels-idx1-ubyte"), &idx(&[count], &labels));
        }
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path("idx").join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.file(name), bytes).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnist"));
        command
            .arg("--mnist-dir")
            .arg(self.path("idx"))
            .arg("--data-dir")
            .arg(self.path("stores"))
            .args(["--log-every", "1"])
            .args(if more.contains(&"--batch-size") { &[][..] } else { &["--batch-size", "8"] })
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    pub fn start(&self, more: &[&str]) -> Child {
        self.command(more).spawn().unwrap()
    }

    /// Runs the program, which must succeed; what it printed.
    pub fn succeed(&self, more: &[&str]) -> String {
        let output = self.run(more);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}\n{error}");
        out
    }

    /// Runs the program, which must fail with an error; the error.
    pub fn fail(&self, more: &[&str]) -> String {
        let output = self.run(more);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{out}\n{error}");
        assert!(error.starts_with("error: ") && !error.contains("panicked"), "{error}");
        error
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The loss of each step that was printed.
pub fn losses(printed: &str) -> Vec<(u64, String)> {
    printed
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("step")?.split_whitespace();
            let step = words.next()?.parse().ok()?;
            assert_eq!(words.next(), Some("loss"));
            Some((step, words.next()?.to_owned()))
        })
        .collect()
}

/// Everything below `dir`, sorted.
pub fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}
