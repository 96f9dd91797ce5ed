//! A process without memory: the kernel kills it, as it does where a container's limit is too low.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A group of processes that may have no more memory than they have.
pub struct Starved(PathBuf);

impl Starved {
    /// Puts a process into it.
    ///
    /// # Errors
    /// The test may not make control groups.
    pub fn put(process: u32) -> io::Result<Self> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = if first.join("memory.limit_in_bytes").exists() {
            (first, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let group = Self(root.join(format!("nlac-test-{process}")));
        fs::create_dir(&group.0)?;
        fs::write(group.0.join(limit), "0")?;
        fs::write(group.0.join("cgroup.procs"), process.to_string())?;
        Ok(group)
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
