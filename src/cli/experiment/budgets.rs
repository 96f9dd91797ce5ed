//! Arms at equal budgets: results of each arm when it had used as much as the first arm used in total.

use std::{collections::HashMap, fmt::Write};

use super::{
    outcome::{Axis, Run},
    plan::Experiment,
    resampling,
};
use crate::quantity::{count, span, summary};

/// Markdown: one table per kind of budget.
pub(super) fn markdown(experiment: &Experiment, runs: &[Run]) -> String {
    let mut text = String::new();
    let Some(first) = experiment.arms.first() else { return text };
    for axis in Axis::ALL {
        let ends = runs.iter().filter(|run| run.arm == first.name && run.success().is_some());
        let budget = ends.filter_map(|run| run.end(*axis)).reduce(f64::min);
        let Some(budget) = budget else { continue };
        let _ = write!(
            text,
            "\n## {}: {}\n\n| arm | success | 95 % interval | {} minus this arm | 95 % interval | p \
             |\n|---|--:|--:|--:|--:|--:|\n",
            axis.title(),
            amount(*axis, budget),
            first.title
        );
        let reference = at(runs, &first.name, *axis, budget);
        for arm in &experiment.arms {
            let reached = at(runs, &arm.name, *axis, budget);
            let values: Vec<f64> = reached.values().map(|(success, _)| *success).collect();
            let Some(found) = summary(&values) else { continue };
            let early = reached.values().filter(|(_, ended)| *ended).count();
            let note = if early > 0 { format!(" ({early} ended before)") } else { String::new() };
            let mut seeds: Vec<_> =
                reached.keys().filter(|seed| reference.contains_key(seed)).collect();
            seeds.sort_unstable();
            let paired: Vec<f64> = match arm.name == first.name {
                true => Vec::new(),
                false => seeds.iter().map(|seed| reference[seed].0 - reached[seed].0).collect(),
            };
            let _ = writeln!(
                text,
                "| {}{note} | {:.1} % | {} | {} | {} | {} |",
                arm.title,
                100.0 * found.mean,
                shown(resampling::interval(&values)),
                summary(&paired).map_or("–".into(), |s| format!("{:+.1}", 100.0 * s.mean)),
                shown(resampling::interval(&paired)),
                resampling::paired_p(&paired).map_or("–".into(), |p| format!("{p:.3}")),
            );
        }
    }
    text.trim_start().to_owned()
}

/// Success of an arm's runs by seed when they had used a budget, and whether they had ended before that.
fn at(runs: &[Run], arm: &str, axis: Axis, budget: f64) -> HashMap<u64, (f64, bool)> {
    let of_arm = runs.iter().filter(|run| run.arm == arm && run.success().is_some());
    of_arm.filter_map(|run| Some((run.seed, run.success_at(axis, budget)?))).collect()
}

fn amount(axis: Axis, budget: f64) -> String {
    if axis == Axis::Seconds { span(budget) } else { count(budget) }
}

fn shown(interval: Option<(f64, f64)>) -> String {
    interval.map_or("–".into(), |(low, high)| format!("{:.1} – {:.1}", 100.0 * low, 100.0 * high))
}
