//! Estimates what a job will take before it starts. Counts follow from its spec where the spec decides them, and
//! from what earlier jobs measured where it does not. What is not known is null.

mod basis;
mod budgets;
mod observed;
mod projection;

use serde::Serialize;
use utoipa::ToSchema;

pub use self::observed::{Observed, Pace, Sample};
use self::{
    basis::Basis,
    budgets::{budgets, ended},
    projection::{Projection, Totals},
};
use crate::{
    algo::End,
    domain::{spec::JobSpec, text_enum::text_enum},
};

/// One quantity.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Figure {
    /// At the mean of what it is based on; null where that is not known.
    pub likely: Option<f64>,
    /// At the lowest; null where no bound is known.
    pub least: Option<f64>,
    /// At the highest; null where no bound is known.
    pub most: Option<f64>,
    /// What it is based on, and how sure it is.
    pub basis: String,
}

text_enum!(
    /// Whether a budget ends the job before its iterations do.
    Outlook {
        /// It does, whatever happens within what was measured and what the spec allows.
        Spent = "spent",
        /// It does, if things go as they did in earlier jobs.
        Likely = "likely",
        /// It may.
        Possible = "possible",
        /// It does not.
        Kept = "kept",
        /// Nothing is known that would tell.
        Unknown = "unknown",
    }
);

/// A budget of the spec beside what the job would take without it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BudgetOutlook {
    /// Its name in `budget`.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// What it allows.
    pub limit: f64,
    /// What all iterations would likely take.
    pub likely: Option<f64>,
    /// Whether it ends the job.
    pub outlook: Outlook,
    /// The iteration after which it likely does.
    pub iteration: Option<u32>,
    /// The same for people.
    pub message: String,
}

/// What a job will take. Guards and failures are left aside; what is generated to measure (held-out episodes,
/// the critic's health) counts in the wall time alone, as in a job's own metrics.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Estimate {
    /// Iterations until the first budget is spent.
    pub iterations: Figure,
    /// Episodes that are played to learn from.
    pub episodes: Figure,
    /// Episodes that are played to measure.
    pub held_out_episodes: Figure,
    /// Environment steps taken to learn from.
    pub env_steps: Figure,
    /// Texts that are generated to act and to annotate.
    pub generation_calls: Figure,
    /// Tokens of their prompts.
    pub prompt_tokens: Figure,
    /// Tokens written in them.
    pub generated_tokens: Figure,
    /// Optimizer steps.
    pub optimizer_steps: Figure,
    /// Tokens trained on, prompts included, every pass counted.
    pub trained_tokens: Figure,
    /// Wall time, seconds.
    pub seconds: Figure,
    /// Money; null, because the service knows no prices.
    pub cost: Figure,
    /// Every budget of the spec beside `iterations`.
    pub budgets: Vec<BudgetOutlook>,
}

/// Estimates a job that learns from so many logged episodes beside its own.
#[must_use]
pub fn estimate(spec: &JobSpec, observed: &Observed, pace: &Pace, logged: u32) -> Estimate {
    let projection = |end| Projection { spec, observed, pace, logged, end };
    let [least, likely, most] = [End::Least, End::Likely, End::Most].map(projection);
    let all = if spec.algorithm.trains() { spec.budget.iterations } else { 0 };
    // The most that an iteration can take ends the job soonest.
    let ends = [
        ended(&most, all).unwrap_or(all.min(1)),
        ended(&likely, all).unwrap_or(0),
        ended(&least, all).unwrap_or(all),
    ];
    let known = ended(&likely, all).is_some();
    let totals = [least.totals(ends[0]), likely.totals(ends[1]), most.totals(ends[2])];
    let basis = Basis { spec, observed, pace };
    let figure = |of: fn(&Totals) -> Option<f64>, basis: String| {
        let [low, mean, high] = totals.each_ref().map(of);
        let likely = mean.filter(|_| known);
        // A likely figure lies between its bounds, whichever budget ends the job.
        let within = |bound: Option<f64>, pick: fn(f64, f64) -> f64| match (bound, likely) {
            (Some(bound), Some(likely)) => Some(pick(bound, likely)),
            (bound, _) => bound,
        };
        Figure { likely, least: within(low, f64::min), most: within(high, f64::max), basis }
    };
    let exact = || if ends[0] == ends[2] { "the spec".into() } else { basis.counts() };
    Estimate {
        iterations: Figure {
            likely: known.then(|| f64::from(ends[1])),
            least: Some(f64::from(ends[0])),
            most: Some(f64::from(ends[2])),
            basis: exact(),
        },
        episodes: figure(|t| Some(t.episodes), exact()),
        held_out_episodes: figure(|t| Some(t.held_out), exact()),
        env_steps: figure(|t| t.env_steps, basis.counts()),
        generation_calls: figure(|t| t.calls, basis.counts()),
        prompt_tokens: figure(|t| t.prompt, basis.lengths()),
        generated_tokens: figure(|t| t.generated, basis.counts()),
        optimizer_steps: figure(|t| t.steps, basis.counts()),
        trained_tokens: figure(|t| t.trained, basis.lengths()),
        seconds: figure(|t| t.seconds, basis.time()),
        cost: Figure {
            likely: None,
            least: None,
            most: None,
            basis: "nothing: the service knows no prices; multiply the wall time by what your engine and \
                    trainer cost"
                .into(),
        },
        budgets: budgets(&[least, likely, most], all),
    }
}

#[cfg(test)]
mod tests;
