//! What a job will take, told before it starts: counts that follow from its spec, and where those do not
//! decide, what earlier jobs measured. What nobody knows is null.

mod count;
mod observed;

use serde::Serialize;
use utoipa::ToSchema;

use self::count::{Course, Totals};
pub use self::observed::{Observed, Pace, Sample};
use super::{quantity, spec::JobSpec, text_enum::text_enum};

/// Which end of what is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Least,
    Likely,
    Most,
}

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
    let course = |end| Course { spec, observed, pace, logged, end };
    let [least, likely, most] = [End::Least, End::Likely, End::Most].map(course);
    let all = if spec.algorithm.trains() { spec.budget.iterations } else { 0 };
    // The most that an iteration can take ends the job soonest.
    let ends = [
        ended(&most, all).unwrap_or(all.min(1)),
        ended(&likely, all).unwrap_or(0),
        ended(&least, all).unwrap_or(all),
    ];
    let known = ended(&likely, all).is_some();
    let totals = [totals(&least, ends[0]), totals(&likely, ends[1]), totals(&most, ends[2])];
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

fn totals(course: &Course<'_>, last: u32) -> Totals {
    course.run(last).last().unwrap_or_else(|| course.before(last))
}

/// The iteration after which the first budget is spent; none if that cannot be said.
fn ended(course: &Course<'_>, all: u32) -> Option<u32> {
    let limits = limits(course.spec);
    for (index, totals) in (1..).zip(course.run(all)) {
        for (_, _, limit, spent) in &limits {
            if spent(&totals)? >= *limit {
                return Some(index);
            }
        }
    }
    Some(all)
}

/// What a budget counts.
type Spent = fn(&Totals) -> Option<f64>;

/// The budgets that are set: name, unit, limit and what counts against it.
fn limits(spec: &JobSpec) -> Vec<(&'static str, &'static str, f64, Spent)> {
    let budget = &spec.budget;
    let all: [(_, _, _, Spent); 4] = [
        ("optimizer_steps", "optimizer steps", budget.optimizer_steps, |t| t.steps),
        ("env_steps", "environment steps", budget.env_steps, |t| t.env_steps),
        ("tokens", "tokens", budget.tokens, |t| Some(t.generated? + t.prompt? + t.trained?)),
        ("wall_seconds", "seconds", budget.wall_seconds, |t| t.seconds),
    ];
    let set = all
        .into_iter()
        .filter_map(|(name, unit, limit, of)| limit.map(|limit| (name, unit, limit as f64, of)));
    set.collect()
}

fn budgets([least, likely, most]: &[Course<'_>; 3], all: u32) -> Vec<BudgetOutlook> {
    let outlook = |(name, unit, limit, spent): (&'static str, &str, f64, Spent)| {
        let whole = |course: &Course<'_>| spent(&totals(course, all));
        let reached = |course: &Course<'_>| whole(course).map(|total| total >= limit);
        let outlook = match (reached(least), reached(likely), reached(most)) {
            (Some(true), ..) => Outlook::Spent,
            (_, Some(true), _) => Outlook::Likely,
            (.., Some(true)) => Outlook::Possible,
            (.., Some(false)) => Outlook::Kept,
            (_, Some(false), None) => Outlook::Possible,
            (_, None, None) => Outlook::Unknown,
        };
        let after = |t: &Totals| spent(t).is_some_and(|total| total >= limit);
        let iteration = (1..).zip(likely.run(all)).find(|(_, t)| after(t)).map(|(index, _)| index);
        let total = whole(likely);
        let allowed = format!("{} {unit} are allowed", quantity::count(limit));
        let likely = total.map_or_else(String::new, |total| {
            format!(", {all} iterations would likely take {}", quantity::count(total))
        });
        let then = match (outlook, iteration) {
            (Outlook::Kept, _) => "; that is enough".into(),
            (Outlook::Unknown, _) => "; whether that is enough is not known".into(),
            (_, Some(iteration)) => format!("; the job likely ends after iteration {iteration}"),
            (Outlook::Spent, None) => "; the job ends before its last iteration".into(),
            _ => "; the job may end before its last iteration".into(),
        };
        let message = format!("{allowed}{likely}{then}");
        BudgetOutlook { name, limit, likely: total, outlook, iteration, message }
    };
    limits(least.spec).into_iter().map(outlook).collect()
}

/// Where figures come from, in words.
struct Basis<'a> {
    spec: &'a JobSpec,
    observed: &'a Observed,
    pace: &'a Pace,
}

impl Basis<'_> {
    fn jobs(count: usize) -> String {
        if count == 1 { "1 earlier job".into() } else { format!("{count} earlier jobs") }
    }

    fn counts(&self) -> String {
        match self.observed.iterations {
            0 => "the spec's bounds: no job with this environment, model and algorithm has learnt here yet"
                .into(),
            n => format!(
                "the spec and {} with this environment, model and algorithm: mean of {n} iterations, their \
                 extremes and a quarter beyond",
                Self::jobs(self.observed.jobs)
            ),
        }
    }

    fn lengths(&self) -> String {
        match self.observed.iterations {
            0 => "nothing: how long prompts are is measured by the first job with this environment, model and \
                  algorithm"
                .into(),
            _ => self.counts(),
        }
    }

    fn time(&self) -> String {
        let model = &self.spec.model;
        let here = format!("engine {} and trainer {}", model.engine, model.trainer);
        match (self.pace.jobs, self.observed.iterations) {
            (0, _) => format!(
                "nothing: no job has learnt on {here} yet; `nlac doctor` measures what they can do"
            ),
            (_, 0) => self.lengths(),
            (jobs, _) => {
                format!("the figures above at the speed of {} on {here}", Self::jobs(jobs))
            }
        }
    }
}

#[cfg(test)]
mod tests;
