//! What a command works on: a single store, or every stream of a dataset.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loaderx_core::convert::Dataset;
use loaderx_core::{Error, ErrorKind, OpenOptions, Result, Store};

/// A store, or the streams of a dataset, opened for reading.
#[derive(Debug)]
pub(crate) struct Target {
    /// With an empty name where the path itself is the store.
    pub(crate) streams: Vec<(String, Arc<Store>)>,
    pub(crate) is_dataset: bool,
}

impl Target {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        require(path)?;
        if path.join("meta.zr").exists() {
            let store = Arc::new(Store::open(path)?);
            return Ok(Self { streams: vec![(String::new(), store)], is_dataset: false });
        }
        let dataset = Dataset::open(path)?;
        let streams = dataset.streams().map(|(name, store)| (name.to_owned(), Arc::clone(store))).collect();
        Ok(Self { streams, is_dataset: true })
    }

    /// Records of each stream.
    pub(crate) fn len(&self) -> u64 {
        self.streams.first().map_or(0, |(_, store)| store.len())
    }

    /// The only store, for commands that cannot work on several.
    pub(crate) fn single(&self, path: &Path) -> Result<&Arc<Store>> {
        match self.streams.as_slice() {
            [(_, store)] => Ok(store),
            streams => {
                let names: Vec<_> =
                    streams.iter().map(|(name, _)| path.join(name).display().to_string()).collect();
                Err(Error::invalid("this is a dataset of several streams")
                    .at_path(path)
                    .with_hint(format!("name one of its streams: {}", names.join(", "))))
            }
        }
    }
}

/// The directories of the stores in `path`: itself, or its streams, without opening them.
pub(crate) fn store_paths(path: &Path) -> Result<Vec<PathBuf>> {
    if path.join("meta.zr").exists() {
        return Ok(vec![path.to_path_buf()]);
    }
    require(path)?;
    let entries = std::fs::read_dir(path).map_err(|error| Error::io("open the dataset", path, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("open the dataset", path, error))?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A stream without its table is damaged, not missing: opening it says so.
        if !hidden && ["meta.zr", "0.zr"].iter().any(|file| entry.path().join(file).exists()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    if paths.is_empty() {
        // Says what is missing.
        Store::open(path)?;
    }
    Ok(paths)
}

/// Refuses a path that leads nowhere or to a file.
fn require(path: &Path) -> Result<()> {
    if path.is_file() {
        return Err(Error::invalid("this is a file, and stores and datasets are directories")
            .at_path(path)
            .with_hint("`loaderx import` makes a store of a file"));
    }
    if path.exists() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotFound, "there is no store or dataset")
        .at_path(path)
        .with_hint("check the path; `loaderx import` makes a store from other data"))
}

/// Opens the store for deleting and compacting.
pub(crate) fn open_writable(path: &Path) -> Result<Store> {
    OpenOptions::new().writable(true).open(path)
}
