//! Directories that appear with all their files, or not at all.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// A directory under construction. Dropped before [`Partial::finish`], it is removed.
pub struct Partial {
    path: PathBuf,
    into: PathBuf,
}

impl Partial {
    /// Begins a directory that will have the name `into`.
    pub fn begin(into: &Path) -> std::io::Result<Self> {
        let name = into.file_name().unwrap_or_default().to_string_lossy();
        let path = into.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(Self { path, into: into.to_owned() })
    }

    /// Where a file of it lies for the time being.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Flushes every file to the disk, then gives the directory its name.
    pub fn finish(self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            File::open(entry?.path())?.sync_all()?;
        }
        fs::rename(&self.path, &self.into)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After `finish` there is nothing under this name.
        let _ = fs::remove_dir_all(&self.path);
    }
}
