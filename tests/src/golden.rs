//! The stores under `tests/fixtures/stores`, which Python loaderx 0.9.4 wrote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::Model;
use crate::npy::Npy;

/// One golden store.
#[derive(Clone, Debug)]
pub struct Golden {
    /// Its name, which is that of its files.
    pub name: String,
    /// What the manifest says about it.
    pub manifest: Value,
}

/// How long the unpacked files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As long as their content.
    Content,
    /// As long as Python makes them: chunks of 4 GiB, sparse.
    Python,
}

/// Every golden store.
#[must_use]
pub fn all() -> Vec<Golden> {
    let text = fs::read_to_string(folder().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let stores = manifest["stores"].as_object().unwrap();
    stores.iter().map(|(name, manifest)| Golden { name: name.clone(), manifest: manifest.clone() }).collect()
}

/// The golden store of this name.
#[must_use]
pub fn named(name: &str) -> Golden {
    all().into_iter().find(|golden| golden.name == name).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores")
}

impl Golden {
    /// Puts the store into the new directory `path`.
    pub fn unpack(&self, path: &Path, extent: Extent) {
        fs::create_dir(path).unwrap();
        let sizes = &self.manifest["full_sizes"];
        for entry in fs::read_dir(folder().join("parts").join(&self.name)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let content = fs::read(entry.path()).unwrap();
            if let Some(name) = name.strip_suffix(".tail") {
                let file = fs::File::create(path.join(name)).unwrap();
                let size = sizes[name].as_u64().unwrap();
                file.set_len(size).unwrap();
                write_at(&file, &content, size - content.len() as u64);
                continue;
            }
            fs::write(path.join(&name), content).unwrap();
            if extent == Extent::Python {
                let file = fs::File::options().write(true).open(path.join(&name)).unwrap();
                file.set_len(sizes[&name].as_u64().unwrap()).unwrap();
            }
        }
    }

    /// The records that Python reads back.
    #[must_use]
    pub fn model(&self) -> Model {
        let read = |what: &str| Npy::read(&folder().join(format!("{}.{what}.npy", self.name)));
        let records = if self.manifest["kind"] == "dense" {
            let content = read("content");
            let count = content.shape[0];
            let size = content.bytes.len().checked_div(count).unwrap_or(0);
            (0..count).map(|i| content.bytes[i * size..(i + 1) * size].to_vec()).collect()
        } else {
            let packed = read("packed");
            let offsets = read("offsets").integers();
            assert_eq!(offsets.last(), Some(&(packed.bytes.len() as u64)), "{}", self.name);
            offsets.windows(2).map(|ends| packed.bytes[ends[0] as usize..ends[1] as usize].to_vec()).collect()
        };
        Model { records }
    }

    /// The NumPy type string in the schema, if it has one.
    #[must_use]
    pub fn dtype(&self) -> Option<&str> {
        self.manifest["schema"]["dtype"].as_str()
    }

    /// The item shape in the schema.
    #[must_use]
    pub fn item_shape(&self) -> Vec<usize> {
        let sides = self.manifest["schema"]["item_shape"].as_array().unwrap();
        sides.iter().map(|side| side.as_u64().unwrap() as usize).collect()
    }
}

fn write_at(file: &fs::File, bytes: &[u8], offset: u64) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = file;
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}
