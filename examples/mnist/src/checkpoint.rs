//! Checkpoints: model, optimizer and loader state, each saved as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use loaderx_core::LoaderState;

use crate::Result;
use crate::model::Network;

const MODEL: &str = "model.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const LOADER: &str = "loader.state";
const LEARNING_RATE: &str = "learning-rate.txt";

/// A folder of checkpoints, `step-00000500` and so on; the newest two are kept.
#[derive(Debug)]
pub struct Checkpoints {
    dir: PathBuf,
}

/// What training goes on from.
pub struct Saved {
    /// The network.
    pub network: Network,
    /// The optimizer with its moments.
    pub optimizer: ModuleOptimizer,
    /// The loader's next step.
    pub loader: LoaderState,
    /// The learning rate of the first step.
    pub lr: f64,
}

impl Checkpoints {
    /// Makes the folder where it is missing.
    pub fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)
            .map_err(|error| format!("the checkpoint folder {} cannot be made: {error}", dir.display()))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// The newest checkpoint and its step.
    pub fn newest(&self) -> Result<Option<(u64, PathBuf)>> {
        Ok(self.all()?.pop())
    }

    fn all(&self) -> Result<Vec<(u64, PathBuf)>> {
        let mut found = Vec::new();
        let entries = fs::read_dir(&self.dir).map_err(|error| read_error(&self.dir, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| read_error(&self.dir, &error))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(step) = name.strip_prefix("step-").and_then(|step| step.parse().ok()) {
                found.push((step, path));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Saves everything under the loader's step. A checkpoint appears under its name when it is complete.
    pub fn save(
        &self,
        network: &Network,
        optimizer: &ModuleOptimizer,
        loader: &LoaderState,
        lr: f64,
    ) -> Result<PathBuf> {
        let path = self.dir.join(format!("step-{:08}", loader.step()));
        if path.exists() {
            // A step's state is the same each time.
            return Ok(path);
        }
        let unfinished = self.dir.join(".unfinished");
        let write = || -> Result<()> {
            if unfinished.exists() {
                fs::remove_dir_all(&unfinished)?;
            }
            fs::create_dir(&unfinished)?;
            write_file(&unfinished.join(MODEL), &network.clone().into_record().into_bytes()?)?;
            write_file(&unfinished.join(OPTIMIZER), &optimizer.to_record().into_bytes()?)?;
            write_file(&unfinished.join(LOADER), &loader.to_bytes()?)?;
            write_file(&unfinished.join(LEARNING_RATE), format!("{lr:?}\n").as_bytes())?;
            fs::rename(&unfinished, &path)?;
            Ok(())
        };
        write().map_err(|error| format!("the checkpoint {} cannot be written: {error}", path.display()))?;
        for (_, old) in self.all()?.iter().rev().skip(2) {
            fs::remove_dir_all(old).map_err(|error| {
                format!("the old checkpoint {} cannot be removed: {error}", old.display())
            })?;
        }
        Ok(path)
    }
}

impl Saved {
    /// Reads the checkpoint `path` into a new network on `device`.
    pub fn load(path: &Path, device: &Device, optimizer: ModuleOptimizer) -> Result<Self> {
        let damaged =
            |file: &str, error: String| format!("{} cannot be used: {error}", path.join(file).display());
        let read = |file: &str| fs::read(path.join(file)).map_err(|error| damaged(file, error.to_string()));

        let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(read(MODEL)?))
            .map_err(|error| damaged(MODEL, error.to_string()))?;
        let network = Network::new(device)
            .try_load_record(record)
            .map_err(|error| damaged(MODEL, error.to_string()))?;
        let optimizer = optimizer
            .from_bytes(Bytes::from_bytes_vec(read(OPTIMIZER)?))
            .map_err(|error| damaged(OPTIMIZER, error.to_string()))?;
        let loader =
            LoaderState::from_bytes(&read(LOADER)?).map_err(|error| damaged(LOADER, error.to_string()))?;
        let text = read(LEARNING_RATE)?;
        // The end of the line tells a whole number from the beginning of one.
        let lr = std::str::from_utf8(&text)
            .ok()
            .and_then(|text| text.strip_suffix('\n')?.parse::<f64>().ok())
            .ok_or_else(|| {
                damaged(LEARNING_RATE, format!("{} bytes are no line with a number", text.len()))
            })?;
        Ok(Self { network, optimizer, loader, lr })
    }
}

fn read_error(path: &Path, error: &io::Error) -> String {
    format!("the checkpoint folder {} cannot be read: {error}", path.display())
}

/// Writes a file so that it is on the disk before it gets its name.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
