//! Short runs of arms whose time the service cannot estimate yet. They measure how fast an arm is.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    plan::{Experiment, Planned, Settings},
    remaining,
    results::Kept,
    runs::{self, Progress},
};
use crate::cli::{Failure, client::Api, report};

/// Seconds per training episode, by arm.
pub(super) type Pace = HashMap<String, f64>;

/// Runs one short job of each arm that has runs of unknown time ahead, several at a time, as the runs themselves.
pub(super) async fn run(
    api: &Api,
    experiment: &Experiment,
    ahead: &[Planned],
    parallel: usize,
) -> Result<Pace, Failure> {
    let unknown = remaining::unknown(api, ahead).await?;
    if unknown.is_empty() {
        return Ok(Pace::new());
    }
    report::line(&format!(
        "{}: a short run of each of {} arms shows how fast this machine is",
        experiment.name,
        unknown.len()
    ));
    let mut progress = Progress::new(unknown.len(), parallel);
    let short = short();
    let pilots = experiment.pilots(&unknown, &short)?;
    let runs = runs::all(api, pilots, &Kept::default(), &mut progress, |_| Ok(())).await?;
    let pace = runs.iter().map(|run| (run.arm.clone(), run.seconds / episodes(&run.spec)));
    Ok(pace.filter(|(_, seconds)| seconds.is_finite()).collect())
}

/// Training episodes of a job.
pub(super) fn episodes(spec: &Value) -> f64 {
    let count = |pointer| spec.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    count("/budget/iterations") * count("/rollout/episodes")
}

/// Long enough to end the warm-up of an algorithm.
fn short() -> Settings {
    let settings = json!({
        "budget.iterations": 4, "rollout.episodes": 24, "evaluation.every": 4, "evaluation.episodes": 24,
        "evaluation.interim_episodes": 24, "evaluation.also": [],
    });
    settings.as_object().cloned().unwrap_or_default()
}
