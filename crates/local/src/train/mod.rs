//! Gradients and optimizer steps.

mod adam;
mod backward;
mod layers;
mod lora_trainer;
mod loss;
mod scored;
mod state;
mod value;

use std::{os::unix::fs::PermissionsExt, path::Path};

pub use adam::{Adam, AdamParams};
pub use backward::{Example, Gradients, forward_backward, logprobs};
pub use lora_trainer::{LoraTrainer, Role, Shape, StepStats};
pub use loss::{Clip, Loss, Sampled, ValueTargets};
pub use scored::{ScoredExample, ScoredLoss, log_policy};
pub use value::HeadSpec;

/// Writes a directory all at once: filled under a temporary name, flushed, renamed. A reader sees the
/// whole of it or nothing.
///
/// # Errors
/// What writing runs into; the directory must not exist yet.
pub fn write_directory(
    directory: &Path,
    fill: impl FnOnce(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let parent = directory.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(parent)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    // Removed with what is in it unless it gets its name.
    let partial = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(".partial")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)?;
    fill(partial.path())?;
    for entry in std::fs::read_dir(partial.path())? {
        std::fs::File::open(entry?.path())?.sync_all()?;
    }
    std::fs::File::open(partial.path())?.sync_all()?;
    std::fs::rename(partial.path(), directory)?;
    let _renamed = partial.keep();
    std::fs::File::open(parent)?.sync_all()
}
