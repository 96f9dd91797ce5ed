//! The base model that ships inside the program, written out where engine and trainer can read it.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

#[derive(rust_embed::Embed)]
#[folder = "models/help-desk-base/"]
struct Files;

/// Its name, as engine and trainer serve it.
pub const NAME: &str = "help-desk-base";

/// Writes the model under `data_dir/models/` unless it lies there already, and returns its directory.
/// The directory's name holds the content's hash, so another version never overwrites it.
///
/// # Errors
/// What writing runs into.
pub fn install(data_dir: &Path) -> std::io::Result<PathBuf> {
    let mut hasher = Sha256::new();
    let mut names: Vec<_> = Files::iter().collect();
    names.sort();
    for name in &names {
        if let Some(file) = Files::get(name) {
            hasher.update(&file.data);
        }
    }
    let digest = hasher.finalize();
    let hash: String = digest[..4].iter().map(|b| format!("{b:02x}")).collect();
    let directory = data_dir.join("models").join(format!("{NAME}-{hash}"));
    if directory.exists() {
        return Ok(directory);
    }
    let written = nlac_local::train::write_directory(&directory, |partial| {
        for name in &names {
            if let Some(file) = Files::get(name) {
                std::fs::write(partial.join(name.as_ref()), &file.data)?;
            }
        }
        Ok(())
    });
    match written {
        // Another process was first, and what it wrote has the same hash.
        Err(_) if directory.exists() => Ok(directory),
        written => written.map(|()| directory),
    }
}
