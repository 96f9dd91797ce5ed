//! The experiment file, and the jobs that it asks for.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::cli::Failure;

/// An experiment: one job, varied.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// Part of the jobs' names.
    pub name: String,
    /// The job file that every arm starts from, relative to this one.
    base: String,
    /// Every arm runs with each of them.
    seeds: Vec<u64>,
    /// Settings of all arms, over the base's.
    #[serde(default)]
    common: Map<String, Value>,
    /// What is compared; the first arm is what the others are compared with.
    pub arms: Vec<Arm>,
    #[serde(skip)]
    job: Value,
}

/// One thing to be compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arm {
    /// Its name in the jobs' names.
    pub name: String,
    /// For people.
    pub title: String,
    /// Settings by dotted path (`algorithm.futures: 3`), over the common ones.
    #[serde(default)]
    set: Map<String, Value>,
}

/// A job to be submitted.
pub(super) struct Planned {
    pub arm: String,
    pub seed: u64,
    pub spec: Value,
    /// The same spec of the same experiment is submitted once.
    pub key: String,
}

impl Experiment {
    /// Reads an experiment and its base job.
    pub fn load(file: &Path) -> Result<Self, Failure> {
        let read = |path: &Path| {
            let shown = path.display().to_string();
            std::fs::read_to_string(path).map_err(|e| format!("cannot read {shown}: {e}"))
        };
        let shown = file.display();
        let mut experiment: Self =
            serde_yaml_ng::from_str(&read(file)?).map_err(|e| format!("{shown}: {e}"))?;
        if experiment.arms.is_empty() || experiment.seeds.is_empty() {
            return Err(format!("{shown}: it needs at least one arm and one seed").into());
        }
        let base = file.parent().unwrap_or(Path::new(".")).join(&experiment.base);
        let shown = base.display();
        experiment.job =
            serde_yaml_ng::from_str(&read(&base)?).map_err(|e| format!("{shown}: {e}"))?;
        Ok(experiment)
    }

    /// Every job: arm by arm within a seed, so that an early look compares.
    pub fn plan(&self) -> Result<Vec<Planned>, Failure> {
        let mut planned = Vec::new();
        for &seed in &self.seeds {
            for arm in &self.arms {
                let mut spec = self.job.clone();
                for (path, value) in self.common.iter().chain(&arm.set) {
                    set(&mut spec, path, value.clone())?;
                }
                spec["name"] = format!("{}-{}", self.name, arm.name).into();
                spec["seed"] = seed.into();
                let digest = Sha256::digest(serde_json::to_vec(&spec)?);
                let hash: String = digest[..8].iter().map(|b| format!("{b:02x}")).collect();
                let key = format!("experiment-{}-{}-{seed}-{hash}", self.name, arm.name);
                planned.push(Planned { arm: arm.name.clone(), seed, spec, key });
            }
        }
        Ok(planned)
    }
}

/// Sets a value at a dotted path; what lies on the way must be objects.
fn set(spec: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    let mut at = spec;
    for part in path.split('.') {
        let Value::Object(fields) = at else {
            return Err(format!("{path}: there is no object above {part}").into());
        };
        at = fields.entry(part).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use garde::Validate;
    use serde_json::json;

    use super::{Experiment, set};
    use crate::domain::spec::JobSpec;

    #[test]
    fn the_experiments_of_the_repository_are_jobs_that_would_be_accepted() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        for name in ["help-desk.yaml", "help-desk-sweep.yaml"] {
            let experiment = Experiment::load(&directory.join(name));
            let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
            let planned = experiment.plan().unwrap_or_else(|e| panic!("{name}: {e}"));
            let mut keys: Vec<_> = planned.iter().map(|p| p.key.clone()).collect();
            for planned in planned {
                let spec: JobSpec = serde_json::from_value(planned.spec)
                    .unwrap_or_else(|e| panic!("{name}: {}: {e}", planned.arm));
                spec.validate().unwrap_or_else(|e| panic!("{name}: {}: {e}", planned.arm));
            }
            let all = keys.len();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), all, "{name}: every run has a key of its own");
        }
    }

    #[test]
    fn a_path_reaches_in_and_replaces() {
        let mut spec = json!({"algorithm": {"kind": "nlac", "replay": {"batch": 1}}});
        set(&mut spec, "algorithm.replay.batch", 7.into()).unwrap_or_else(|e| panic!("{e}"));
        set(&mut spec, "budget.env_steps", 9.into()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec["algorithm"]["replay"]["batch"], 7);
        assert_eq!(spec["budget"]["env_steps"], 9);
        set(&mut spec, "algorithm", json!({"kind": "evaluation"}))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec["algorithm"], json!({"kind": "evaluation"}));
        assert!(set(&mut spec, "algorithm.kind.x", 1.into()).is_err());
    }
}
