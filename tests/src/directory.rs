//! Copies and snapshots of store directories.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Bytes of a longer file that are looked at; what is behind them in the tests' stores is a hole.
const LOOKED_AT: u64 = 8 << 20;
const BLOCK: usize = 4096;

/// A file's content, without the hole at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its length.
    pub length: u64,
    /// Its first bytes, or all.
    pub bytes: Vec<u8>,
}

/// Every file of a directory with its content.
pub type Snapshot = BTreeMap<String, Content>;

/// The content of every file in `path`, without sub-directories.
#[must_use]
pub fn snapshot(path: &Path) -> Snapshot {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let files = entries.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file());
    files
        .map(|entry| {
            let mut bytes = Vec::new();
            let file = fs::File::open(entry.path()).unwrap();
            let length = file.metadata().unwrap().len();
            file.take(LOOKED_AT).read_to_end(&mut bytes).unwrap();
            if length > LOOKED_AT {
                let used = bytes.chunks(BLOCK).rposition(|block| *block != [0; BLOCK][..block.len()]);
                bytes.truncate(used.map_or(0, |last| (last + 1) * BLOCK));
            }
            (entry.file_name().into_string().unwrap(), Content { length, bytes })
        })
        .collect()
}

/// Makes `path` a directory with exactly these files.
pub fn restore(path: &Path, files: &Snapshot) {
    if path.exists() {
        fs::remove_dir_all(path).unwrap();
    }
    fs::create_dir_all(path).unwrap();
    for (name, content) in files {
        fs::write(path.join(name), &content.bytes).unwrap();
        fs::File::options().write(true).open(path.join(name)).unwrap().set_len(content.length).unwrap();
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
