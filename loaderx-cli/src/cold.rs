//! Files that are not in memory, for measuring reads from the disk.

use std::fs;
use std::path::Path;

use loaderx_core::{Error, Result};

/// Has the system drop a store's files from memory; other files, and other users of the machine, are left alone.
pub(crate) fn forget(store: &Path) -> Result<()> {
    let failed = |error| Error::io("look into the store", store, error);
    for entry in fs::read_dir(store).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            forget_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn forget_file(path: &Path) -> Result<()> {
    let failed = |error| Error::io("drop a file from memory", path, error);
    let file = fs::File::open(path).map_err(failed)?;
    // What is not on the disk yet cannot be dropped. A store that may only be read cannot have such bytes of ours.
    let _ = file.sync_all();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|error| failed(error.into()))
}

#[cfg(not(target_os = "linux"))]
fn forget_file(path: &Path) -> Result<()> {
    Err(Error::new(loaderx_core::ErrorKind::Unsupported, "cold reads can be measured on Linux only")
        .at_path(path)
        .with_hint("leave out --cold"))
}

/// What this process has had read from a disk so far. Known on Linux only.
pub(crate) fn bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}
