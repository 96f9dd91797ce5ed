//! Remaining time: by the service's estimates before the first run ends, by finished runs after that.

use std::collections::HashMap;

use super::{
    pilot::{Pace, episodes},
    plan::Planned,
};
use crate::{
    cli::{Failure, client::Api},
    quantity::summary,
};

/// Seconds of all these runs, one after the other. The pace of short runs stands in for what the service cannot
/// estimate: a short run without a success tells it nothing about the examples of rejection fine-tuning. None if both
/// are unknown for one of the runs.
pub(super) async fn estimate(
    api: &Api,
    ahead: &[Planned],
    pace: &Pace,
) -> Result<Option<f64>, Failure> {
    let each = each(api, ahead).await?.into_iter();
    let seconds = each.map(|(planned, seconds)| {
        seconds.or_else(|| Some(pace.get(&planned.arm)? * episodes(&planned.spec)))
    });
    Ok(seconds.sum())
}

/// Arms of these runs with a time that the service cannot estimate, in the order of the runs.
pub(super) async fn unknown(api: &Api, ahead: &[Planned]) -> Result<Vec<String>, Failure> {
    let mut arms = Vec::new();
    for (planned, seconds) in each(api, ahead).await? {
        if seconds.is_none() && !arms.contains(&planned.arm) {
            arms.push(planned.arm.clone());
        }
    }
    Ok(arms)
}

/// Each run with its estimate. Runs of an arm that differ only in the seed take the same time.
async fn each<'a>(
    api: &Api,
    ahead: &'a [Planned],
) -> Result<Vec<(&'a Planned, Option<f64>)>, Failure> {
    let mut known: HashMap<(&str, usize, &str), Option<f64>> = HashMap::new();
    let mut each = Vec::new();
    for planned in ahead {
        let name = planned.spec["name"].as_str().unwrap_or_default();
        let alike = (planned.arm.as_str(), planned.setting, name);
        let seconds = match known.get(&alike) {
            Some(seconds) => *seconds,
            None => {
                let estimate = api.post("/v1/jobs/estimate", &planned.spec).await?;
                let seconds = estimate["seconds"]["likely"].as_f64();
                known.insert(alike, seconds);
                seconds
            }
        };
        each.push((planned, seconds));
    }
    Ok(each)
}

/// Seconds of all these runs, one after the other, from finished runs of their arms or else of all arms.
pub(super) fn after(took: &HashMap<String, Vec<f64>>, waiting: &[Planned]) -> f64 {
    let mean = |values: &[f64]| summary(values).map(|s| s.mean);
    let all: Vec<f64> = took.values().flatten().copied().collect();
    let of = |run: &Planned| took.get(&run.arm).and_then(|took| mean(took)).or_else(|| mean(&all));
    waiting.iter().filter_map(of).sum()
}
