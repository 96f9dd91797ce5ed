//! Reads a file with one experiment, or with several worlds of one experiment each.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{plan::Experiment, read_yaml, results::Results};
use crate::cli::Failure;

/// A file of several experiments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Worlds {
    /// Files of experiments, relative to this one.
    worlds: Vec<PathBuf>,
}

/// An experiment and its results.
pub(super) struct World {
    pub experiment: Experiment,
    pub results: Results,
    /// Folder of this world's service, if the file lists several worlds.
    pub folder: Option<String>,
}

/// The experiments of a file. If `only` names a world, that world's experiment alone. Results are in `out`; by default
/// in the folder `results` next to the file, under the file's name.
pub(super) fn load(
    file: &Path,
    out: Option<&Path>,
    only: Option<&str>,
) -> Result<Vec<World>, Failure> {
    let read: Value = read_yaml(file)?;
    let beside = file.parent().unwrap_or(Path::new("."));
    let default = || beside.join("results").join(file.file_stem().unwrap_or_default());
    let out = out.map_or_else(default, ToOwned::to_owned);
    if read["worlds"].is_null() {
        if let Some(only) = only {
            return Err(format!(
                "{} has no worlds, so --world {only} cannot be used",
                file.display()
            )
            .into());
        }
        let experiment = Experiment::load(file)?;
        return Ok(vec![World { experiment, results: Results::new(&out), folder: None }]);
    }
    let Worlds { worlds } = read_yaml(file)?;
    let mut loaded = Vec::new();
    for world in worlds {
        let experiment = Experiment::load(&beside.join(world))?;
        let name = experiment.name.clone();
        loaded.push(World {
            experiment,
            results: Results::new(&out.join(&name)),
            folder: Some(name),
        });
    }
    let names: Vec<_> = loaded.iter().map(|world| world.experiment.name.clone()).collect();
    if let Some(only) = only {
        loaded.retain(|world| world.experiment.name == only);
    }
    match loaded.is_empty() {
        true => {
            Err(format!("{} has only these worlds: {}", file.display(), names.join(", ")).into())
        }
        false => Ok(loaded),
    }
}
