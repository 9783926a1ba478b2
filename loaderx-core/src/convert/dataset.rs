use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::store::{OpenOptions, Store};
use crate::view::{Dense, Ragged};

/// A directory of streams: stores of equally many records, where records of one index belong together.
///
/// ```
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let train = dir.path();
/// use loaderx_core::convert::Dataset;
/// use loaderx_core::{Codec, DType, DenseWriter};
///
/// let images = DenseWriter::create(train.join("image"), DType::U8, &[2, 2], Codec::Raw)?;
/// images.append(vec![1_u8, 2, 3, 4, 5, 6, 7, 8])?;
/// let labels = DenseWriter::create(train.join("label"), DType::I64, &[], Codec::Raw)?;
/// labels.append(vec![0_i64, 1])?;
///
/// let dataset = Dataset::open(train)?;
/// assert_eq!(dataset.names().collect::<Vec<_>>(), ["image", "label"]);
/// assert_eq!(dataset.len(), 2);
/// assert_eq!(dataset.dense("label")?.batch(&[1])?.as_slice::<i64>()?, [1]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    path: PathBuf,
    streams: Vec<(String, Arc<Store>)>,
}

impl Dataset {
    /// Opens every store in the directory `path` for reading. Other files and folders in it are ignored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is no directory or no store in it; [`ErrorKind::SchemaMismatch`] when
    /// the streams differ in length, with both numbers; when a store is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// As [`Dataset::open`], with options for every store.
    ///
    /// # Errors
    ///
    /// As [`Dataset::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        if is_store(path) {
            return Err(Error::invalid("this is a single store, not a directory of streams")
                .at_path(path)
                .with_hint("open it as a store, or open the directory that it is in"));
        }
        let failed = |error| Error::io("open the dataset", path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A stream that has lost its table is an error, not a stream less.
            if !is_store(&entry.path()) && !has_chunks(&entry.path()) {
                continue;
            }
            match entry.file_name().into_string() {
                // What an import that was killed left behind.
                Ok(name) if name.starts_with('.') => {}
                Ok(name) => names.push(name),
                Err(_) => {
                    return Err(Error::invalid("a stream's name is not valid UTF-8").at_path(entry.path()));
                }
            }
        }
        // Directories list their entries in any order.
        names.sort();
        let streams = names
            .into_iter()
            .map(|name| Ok((name.clone(), Arc::new(options.open(path.join(&name))?))))
            .collect::<Result<Vec<_>>>()?;
        let Some((first_name, first)) = streams.first() else {
            return Err(Error::new(ErrorKind::NotFound, "there is no store in this directory")
                .at_path(path)
                .with_hint("check the path, or make one with Store::create or `loaderx import`"));
        };
        let records = first.len();
        if let Some((name, other)) = streams.iter().find(|(_, store)| store.len() != records) {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!(
                    "stream {first_name:?} has {records} records, stream {name:?} has {}; the streams of a \
                     dataset are equally long",
                    other.len()
                ),
            )
            .at_path(path));
        }
        Ok(Self { path: path.to_path_buf(), streams })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records of each stream.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.streams.first().map_or(0, |(_, store)| store.len())
    }

    /// Whether the streams hold no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The streams' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.streams.iter().map(|(name, _)| name.as_str())
    }

    /// The streams with their names, sorted by these.
    pub fn streams(&self) -> impl Iterator<Item = (&str, &Arc<Store>)> {
        self.streams.iter().map(|(name, store)| (name.as_str(), store))
    }

    /// The store of the stream `name`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, naming those that there are.
    pub fn store(&self, name: &str) -> Result<&Arc<Store>> {
        let found = self.streams().find(|(known, _)| *known == name);
        found.map(|(_, store)| store).ok_or_else(|| {
            let known = self.names().collect::<Vec<_>>().join(", ");
            Error::new(ErrorKind::NotFound, format!("there is no stream {name:?}; there are {known}"))
                .at_path(&self.path)
        })
    }

    /// The stream `name` as records of one shape.
    ///
    /// # Errors
    ///
    /// As [`Dataset::store`]; [`ErrorKind::SchemaMismatch`] when its records are not dense.
    pub fn dense(&self, name: &str) -> Result<Dense> {
        Dense::new(Arc::clone(self.store(name)?))
    }

    /// The stream `name` as records with lengths of their own.
    ///
    /// # Errors
    ///
    /// As [`Dataset::store`]; [`ErrorKind::SchemaMismatch`] when its records are not ragged.
    pub fn ragged(&self, name: &str) -> Result<Ragged> {
        Ragged::new(Arc::clone(self.store(name)?))
    }
}

/// Whether records' bytes are in the directory.
fn has_chunks(path: &Path) -> bool {
    path.join("0.zr").metadata().is_ok_and(|chunk| chunk.is_file() && chunk.len() > 0)
}

/// Whether a store is in the directory.
fn is_store(path: &Path) -> bool {
    path.join("meta.zr").is_file()
}
