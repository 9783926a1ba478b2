//! Small file systems of their own, for tests that run as root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs; unmounted when dropped.
#[derive(Debug)]
pub struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    /// Mounts one of `size` (as `mount` wants it: `1m`) at the folder `path`; `None`, with a message, where that is not
    /// allowed.
    #[must_use]
    pub fn new(path: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("SKIPPED: this needs to mount a file system, which only root can");
            return None;
        }
        Some(Self { path: path.to_path_buf() })
    }

    /// Allows no more changes.
    pub fn make_read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.path).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: a test that panics may still have files open.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
