//! Finds the programs of Postgres.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::error::PostgresError;

/// PG_BIN_DIR, then those of the cluster's own major version, then PATH, then the newest installed.
pub(super) fn find_binaries(data: &Path) -> Result<PathBuf, PostgresError> {
    let complete = |bin: &PathBuf| bin.join("initdb").exists() && bin.join("postgres").exists();
    let mut found: Vec<PathBuf> = Vec::new();
    found.extend(std::env::var_os("PG_BIN_DIR").map(PathBuf::from));
    for path in std::env::var_os("PATH").iter().flat_map(std::env::split_paths) {
        // Distributions put links on the PATH whose siblings are elsewhere.
        let real = fs::canonicalize(path.join("initdb")).ok();
        found.extend(real.and_then(|p| Some(p.parent()?.to_owned())));
    }
    let mut installed: Vec<(u32, PathBuf)> =
        ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt"]
            .into_iter()
            .filter_map(|root| fs::read_dir(root).ok())
            .flatten()
            .flatten()
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let digits: String = name.chars().filter(char::is_ascii_digit).collect();
                (digits.parse().unwrap_or(0), entry.path().join("bin"))
            })
            .collect();
    installed.sort();
    found.extend(installed.into_iter().rev().map(|(_, bin)| bin));
    found.retain(complete);

    let Ok(wanted) = fs::read_to_string(data.join("PG_VERSION")) else {
        return found.into_iter().next().ok_or(PostgresError::NoBinaries);
    };
    let wanted = wanted.trim().to_owned();
    let mut present = Vec::new();
    for bin in found {
        match major(&bin) {
            Some(version) if version == wanted => return Ok(bin),
            Some(version) => present.push(version),
            None => {}
        }
    }
    if present.is_empty() {
        return Err(PostgresError::NoBinaries);
    }
    present.dedup();
    let path = data.display().to_string();
    Err(PostgresError::Version { path, found: wanted, present: present.join(", ") })
}

/// `postgres (PostgreSQL) 15.18 …` to `15`.
fn major(bin: &Path) -> Option<String> {
    let output = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(2)?;
    Some(version.split('.').next()?.to_owned())
}
