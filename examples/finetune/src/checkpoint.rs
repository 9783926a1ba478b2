//! Checkpoints: everything that the next step depends on, in one folder that is either whole or not there.
//!
//! ```text
//! checkpoints/step-00000400/
//!   model.safetensors  config.json  tokenizer.json     also a model that --model takes
//!   optimizer.safetensors                              AdamW's moments
//!   state.json                                         settings, updates made, the loader's state
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use loaderx_core::LoaderState;
use serde::{Deserialize, Serialize};

use crate::trainer::Settings;

/// Checkpoints that are kept; older ones are removed when a new one is complete.
const KEPT: usize = 2;

/// The part of a checkpoint that is not tensors.
#[derive(Debug, Deserialize, Serialize)]
pub struct State {
    /// What the run was started with; a resumed run has to be the same.
    pub settings: Settings,
    /// Updates that the optimizer has made.
    pub updates: i32,
    /// The loader's next step and its fingerprint.
    pub loader: LoaderState,
}

/// Writes a checkpoint of `step` below `folder` with `write`, which fills the directory it is given.
///
/// The directory gets its name only when it is complete and on disk: a kill at any moment leaves the last checkpoint.
pub fn write(folder: &Path, step: u64, write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let made = folder.join(format!("step-{step:08}"));
    let partial = folder.join(format!("step-{step:08}.partial"));
    for stale in [&partial, &made] {
        if stale.exists() {
            fs::remove_dir_all(stale).with_context(|| format!("cannot remove {}", stale.display()))?;
        }
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    write(&partial)?;
    for file in fs::read_dir(&partial)? {
        let path = file?.path();
        sync(&path)?;
    }
    sync(&partial)?;
    fs::rename(&partial, &made).with_context(|| format!("cannot name {}", made.display()))?;
    sync(folder)?;
    let complete = list(folder)?;
    for (_, old) in complete.iter().rev().skip(KEPT) {
        fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    Ok(made)
}

/// The newest complete checkpoint below `folder`.
pub fn newest(folder: &Path) -> Result<PathBuf> {
    let newest = list(folder)?.pop();
    newest.map(|(_, path)| path).with_context(|| format!("there is no checkpoint in {}", folder.display()))
}

/// Reads a checkpoint's state.
pub fn read_state(checkpoint: &Path) -> Result<State> {
    let path = checkpoint.join("state.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a checkpoint's state", path.display()))
}

/// Refuses to go on from a run that was started differently.
pub fn require_same(saved: &Settings, here: &Settings) -> Result<()> {
    let fields = |settings: &Settings| -> Result<serde_json::Map<String, serde_json::Value>> {
        match serde_json::to_value(settings)? {
            serde_json::Value::Object(fields) => Ok(fields),
            other => anyhow::bail!("settings are not an object: {other}"),
        }
    };
    let (saved, here) = (fields(saved)?, fields(here)?);
    for (name, value) in &here {
        let before = saved.get(name).unwrap_or(&serde_json::Value::Null);
        ensure!(
            before == value,
            "the checkpoint was made with {name} = {before}, now it is {value}; give the same options, or start anew without --resume"
        );
    }
    Ok(())
}

/// Complete checkpoints by step, the newest last.
fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        // A folder whose name ends in `.partial` has no number here.
        if let Some(step) = name.and_then(|name| name.strip_prefix("step-")?.parse().ok()) {
            found.push((step, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Waits until a file, or a directory's list of files, is on disk.
fn sync(path: &Path) -> Result<()> {
    let directory = path.is_dir();
    if cfg!(windows) && directory {
        // Windows has no handle for this; it writes directories through.
        return Ok(());
    }
    let opened = File::options().read(true).write(!directory).open(path);
    opened.and_then(|file| file.sync_all()).with_context(|| format!("cannot sync {}", path.display()))
}
