//! Copies and snapshots of store directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every file of a directory with its content.
pub type Snapshot = BTreeMap<String, Vec<u8>>;

/// The content of every file in `path`, without sub-directories.
#[must_use]
pub fn snapshot(path: &Path) -> Snapshot {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let files = entries.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Makes `path` a directory with exactly these files.
pub fn restore(path: &Path, files: &Snapshot) {
    if path.exists() {
        fs::remove_dir_all(path).unwrap();
    }
    fs::create_dir_all(path).unwrap();
    for (name, content) in files {
        fs::write(path.join(name), content).unwrap();
    }
}

/// Name, length and time of the last change of every file in `path`: what "nothing was written" means where
/// the files are too long to compare.
#[must_use]
pub fn listing(path: &Path) -> BTreeMap<String, (u64, std::time::SystemTime)> {
    fs::read_dir(path)
        .unwrap()
        .map(Result::unwrap)
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            (entry.file_name().into_string().unwrap(), (metadata.len(), metadata.modified().unwrap()))
        })
        .collect()
}
