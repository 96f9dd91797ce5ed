//! The local copies of a bucket's adapters: the ones that were used longest ago go first.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How long a copy stays after its last use, even if there is no room: an engine may still read it.
const IN_USE: Duration = Duration::from_secs(600);

/// When each copy was used.
#[derive(Debug, Default)]
pub(super) struct Cache {
    used: Mutex<HashMap<String, Instant>>,
}

struct Copy {
    name: String,
    bytes: u64,
    used: Option<Instant>,
    written: SystemTime,
}

impl Cache {
    /// Notes that a copy is used now, before anyone looks for it.
    pub fn touch(&self, name: &str) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(name.to_owned(), Instant::now());
    }

    /// Removes copies until the directory holds at most so many bytes, except those in use.
    pub fn trim(&self, directory: &Path, most: u64) -> io::Result<()> {
        self.trim_at(directory, most, Instant::now())
    }

    fn trim_at(&self, directory: &Path, most: u64, now: Instant) -> io::Result<()> {
        let mut copies = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if super::plain(&name) {
                let written = entry.metadata()?.modified()?;
                copies.push(Copy { bytes: size(&entry.path())?, used: None, name, written });
            }
        }
        let mut bytes: u64 = copies.iter().map(|copy| copy.bytes).sum();
        for gone in self.surplus(directory, copies, &mut bytes, most, now)? {
            fs::remove_dir_all(gone)?;
        }
        Ok(())
    }

    /// Takes surplus copies out of the way. Who looks for one from now on does not find it.
    fn surplus(
        &self,
        directory: &Path,
        mut copies: Vec<Copy>,
        bytes: &mut u64,
        most: u64,
        now: Instant,
    ) -> io::Result<Vec<PathBuf>> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        for copy in &mut copies {
            copy.used = used.get(&copy.name).copied();
        }
        copies.sort_by_key(|copy| (copy.used, copy.written));
        let mut surplus = Vec::new();
        for copy in copies {
            let in_use = copy.used.is_some_and(|used| now.duration_since(used) < IN_USE);
            if *bytes <= most || in_use {
                continue;
            }
            let gone = directory.join(format!(".{}.{}", copy.name, uuid::Uuid::now_v7()));
            match fs::rename(directory.join(&copy.name), &gone) {
                Ok(()) => surplus.push(gone),
                // Another process with the same cache was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            used.remove(&copy.name);
            *bytes -= copy.bytes;
        }
        Ok(surplus)
    }
}

fn size(directory: &Path) -> io::Result<u64> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Cache, IN_USE, Instant};

    #[test]
    fn the_copy_that_was_used_longest_ago_goes_first() -> std::io::Result<()> {
        let place = tempfile::tempdir()?;
        let cache = Cache::default();
        for name in ["a", "b", "c"] {
            fs::create_dir(place.path().join(name))?;
            fs::write(place.path().join(name).join("file"), [0; 100])?;
        }
        for name in ["b", "a", "c", "b"] {
            cache.touch(name);
        }
        let left = |most, now| {
            cache.trim_at(place.path(), most, now)?;
            let names = fs::read_dir(place.path())?;
            let mut names: Vec<_> =
                names.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            std::io::Result::Ok(names.concat())
        };
        assert_eq!(left(0, Instant::now())?, "abc", "all are in use");
        let later = Instant::now() + IN_USE;
        assert_eq!(left(300, later)?, "abc");
        assert_eq!(left(250, later)?, "bc");
        assert_eq!(left(50, later)?, "");
        Ok(())
    }
}
