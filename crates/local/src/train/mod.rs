//! Gradients and optimizer steps.

mod adam;
mod backward;
mod lora_trainer;

use std::path::Path;

pub use adam::{Adam, AdamParams};
pub use backward::{Example, Gradients, forward_backward, logprobs};
pub use lora_trainer::{LoraTrainer, StepStats};

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
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let partial = parent.join(format!(".{name}.{}.partial", std::process::id()));
    if partial.exists() {
        std::fs::remove_dir_all(&partial)?;
    }
    std::fs::create_dir(&partial)?;
    let filled = fill(&partial).and_then(|()| std::fs::rename(&partial, directory));
    if let Err(error) = filled {
        // The first error is the one to tell; a leftover is cleared by the next attempt.
        let _ = std::fs::remove_dir_all(&partial);
        return Err(error);
    }
    std::fs::File::open(parent)?.sync_all()
}
