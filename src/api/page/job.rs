//! One job: status, learning curves, budgets and events.

use std::collections::HashMap;

use askama::Template;
use axum::{extract::State, response::Html};
use sqlx::PgConnection;

use super::{
    chart::{self, Span},
    evaluation, format, render,
    transition::Card,
};
use crate::{
    api::{AppState, extract::Id, problem::Problem},
    domain::{
        access::LOCAL,
        event::EventKind,
        ids::JobId,
        job::{JobStatus, Phase},
        metric::names,
        spec::{AlgorithmSpec, JobSpec},
    },
    quantity,
    store::{
        StoreError,
        read::{
            jobs::{self as read_jobs, JobFilter, JobRow},
            metrics::{self, Total},
            transitions::{self, Search},
        },
    },
};

/// Iterations in the table and in the picture of phases.
const SHOWN: i32 = 40;

/// Series that the page shows as totals.
const TOTALS: [&str; 9] = [
    names::EVAL_SUCCESS,
    names::EVAL_EPISODES,
    names::EVAL_CHANGE,
    names::EVAL_CHANGE_ERROR,
    names::ENV_STEPS,
    names::OPTIMIZER_STEPS,
    names::GENERATED_TOKENS,
    names::PROMPT_TOKENS,
    names::TRAINED_TOKENS,
];

/// Head of every page of a job.
#[derive(Template)]
#[template(path = "job_head.html")]
pub(super) struct Head {
    pub id: String,
    name: String,
    tabs: [(&'static str, &'static str, bool); 5],
}

impl Head {
    /// Of a job, on one of its pages.
    pub fn new(id: JobId, name: &str, here: &str) -> Self {
        let tabs = [
            ("", "Overview"),
            ("/episodes", "Episodes"),
            ("/checkpoints", "Checkpoints"),
            ("/events", "Events"),
            ("/spec", "Spec"),
        ];
        let tabs = tabs.map(|(path, title)| (path, title, path == here));
        Self { id: id.to_string(), name: name.to_owned(), tabs }
    }
}

#[derive(Template)]
#[template(path = "job.html")]
struct Page {
    here: &'static str,
    head: Head,
    last_event: i64,
    live: Live,
    more: More,
    plots: Vec<Plot>,
    transitions: Vec<Card>,
}

/// A plot that the script draws: `name@temperature=label` of each series, separated by bars.
struct Plot {
    title: &'static str,
    series: String,
    /// The axis: `share` from 0 to 1, or `free`.
    range: &'static str,
}

#[derive(Template)]
#[template(path = "job_live.html")]
struct Live {
    id: String,
    status: JobStatus,
    over: bool,
    /// Why the job failed or cannot be planned, or which guard paused it.
    halted: Option<String>,
    /// What the job waits for, since when, and why.
    waiting: Option<String>,
    promoted: Option<i32>,
    progress: String,
    phase: String,
    done: i64,
    units: i64,
    before: String,
    now: String,
    /// 95 % confidence interval of success, and the number of episodes.
    interval: Option<String>,
    left: Option<String>,
    spent: Vec<(&'static str, String)>,
}

/// The refreshed part below the plots.
#[derive(Template)]
#[template(path = "job_more.html")]
struct More {
    /// The part is sent along with another one, out of band.
    out_of_band: bool,
    evaluation: Option<evaluation::Table>,
    timeline: String,
    happened: Vec<Happening>,
    rows: Vec<IterationRow>,
}

struct IterationRow {
    index: i32,
    success: String,
    critic_loss: String,
    policy_loss: String,
    yes: String,
    changed: String,
    seconds: String,
}

struct Happening {
    at: String,
    kind: EventKind,
    message: String,
}

/// The page.
pub(super) async fn page(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
) -> Result<Html<String>, Problem> {
    let (job, live, more) = live_of(&state, id, false).await?;
    let mut conn = state.store.acquire().await?;
    let last_event = read_jobs::last_event(&mut conn, id).await?;
    let newest = Search { job: Some(id), ..Search::default() };
    let newest = transitions::search(&mut conn, &newest, 60).await?;
    let newest = transitions::rows(&mut conn, &newest).await?;
    drop(conn);
    // Transitions with a critique come first, because users look for these.
    let (read, unread): (Vec<_>, Vec<_>) = newest.into_iter().partition(|t| t.critique.is_some());
    let transitions = read.into_iter().chain(unread).take(6).map(Card::of).collect();
    let head = Head::new(id, &job.spec.name, "");
    let plots = plots(&job.spec);
    render(&Page { here: "", head, last_event, live, more, plots, transitions })
}

/// The part of the page that refreshes.
pub(super) async fn live(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
) -> Result<Html<String>, Problem> {
    let (_, live, more) = live_of(&state, id, true).await?;
    let (Html(live), Html(more)) = (render(&live)?, render(&more)?);
    Ok(Html(live + &more))
}

/// A job by its id.
pub(super) async fn found(state: &AppState, id: JobId) -> Result<JobRow, Problem> {
    let found = row(&mut *state.store.acquire().await?, id).await?;
    found.ok_or_else(|| Problem::not_found("job", id))
}

/// A job by its id, if there is one.
pub(super) async fn row(conn: &mut PgConnection, id: JobId) -> Result<Option<JobRow>, StoreError> {
    let filter = JobFilter { one: Some(id), ..JobFilter::default() };
    Ok(read_jobs::page(conn, &filter, 1).await?.pop())
}

async fn live_of(
    state: &AppState,
    id: JobId,
    out_of_band: bool,
) -> Result<(JobRow, Live, More), Problem> {
    let job = found(state, id).await?;
    let mut conn = state.store.acquire().await?;
    let quoted = job.spec.evaluation.temperature;
    let totals = metrics::totals(&mut conn, id, &TOTALS, quoted).await?;
    let oldest = (job.iteration.unwrap_or(0) + 1 - SHOWN).max(0);
    let measured = metrics::series(&mut conn, id, Some(&Shown::names()), Some(oldest)).await?;
    let shown = Shown {
        iterations: oldest..measured.iter().map(|m| m.iteration + 1).max().unwrap_or(0),
        values: measured
            .into_iter()
            .filter(|m| m.temperature.is_none_or(|t| t == quoted))
            .map(|m| ((m.name, m.iteration), m.value))
            .collect(),
    };
    let happened = read_jobs::remarkable_events(&mut conn, id, 20).await?;
    let paused = happened.iter().find(|event| event.kind == EventKind::Paused);
    let by_guard =
        paused.filter(|event| job.status == JobStatus::Paused && event.data["guards"].is_array());
    let evaluation = evaluation::last(&mut conn, &job).await?;
    drop(conn);
    let live = Live {
        id: id.to_string(),
        status: job.status,
        over: job.status.is_final(),
        halted: job
            .error
            .clone()
            .or_else(|| job.plan_error.clone())
            .or_else(|| by_guard.map(|event| event.message.clone())),
        waiting: job.waiting_for.as_ref().map(|peer| {
            let since = job.waiting_since.map(format::minute).unwrap_or_default();
            let why = job.waiting_why.as_deref().unwrap_or_default();
            format!("Waiting for {peer} since {since} UTC: {why}")
        }),
        promoted: job.promoted_version,
        progress: job.iteration.map_or_else(
            || "–".into(),
            |iteration| format!("{iteration} of {}", job.spec.budget.iterations),
        ),
        phase: job.phase.filter(|p| *p != Phase::Done).map_or_else(String::new, |p| p.to_string()),
        done: job.units_done.unwrap_or(0),
        units: job.units.unwrap_or(0).max(1),
        before: format::percent(job.success_before),
        now: format::percent(job.success),
        interval: interval(&totals),
        left: job.seconds_left(time::OffsetDateTime::now_utc()).map(format::about),
        spent: spent(&job, &totals),
    };
    let more = More {
        out_of_band,
        evaluation,
        timeline: chart::timeline(&shown.phases()),
        happened: happened
            .into_iter()
            .map(|e| Happening { at: format::minute(e.at), kind: e.kind, message: e.message })
            .collect(),
        rows: shown.rows(),
    };
    Ok((job, live, more))
}

/// Wilson's interval of the newest evaluation.
fn interval(totals: &HashMap<String, Total>) -> Option<String> {
    let newest = |name| totals.get(name).map(|total| total.newest);
    let (success, episodes) = (newest(names::EVAL_SUCCESS)?, newest(names::EVAL_EPISODES)?);
    let (low, high) = quantity::wilson(success, episodes)?;
    let change = newest(names::EVAL_CHANGE).zip(newest(names::EVAL_CHANGE_ERROR));
    let change = change.map(|(change, error)| {
        format!(
            "; {:+.1} ± {:.1} points vs. the best earlier version",
            100.0 * change,
            100.0 * error
        )
    });
    Some(format!(
        "{:.1} – {:.1} %, {episodes:.0} episodes{}",
        100.0 * low,
        100.0 * high,
        change.unwrap_or_default()
    ))
}

fn plots(spec: &JobSpec) -> Vec<Plot> {
    let quoted = spec.evaluation.temperature;
    let temperatures: Vec<_> =
        std::iter::once(quoted).chain(spec.evaluation.also.iter().copied()).collect();
    let at_each = |name| {
        let each = temperatures.iter().map(|t| format!("{name}@{t}=T {t}"));
        each.collect::<Vec<_>>().join("|")
    };
    let series = |all: &[(&str, &str)]| {
        let named = all.iter().map(|(name, label)| format!("{name}={label}"));
        named.collect::<Vec<_>>().join("|")
    };
    let plot = |title, range, series| Plot { title, series, range };
    let mut plots = vec![
        plot("Held-out success by temperature", "share", at_each(names::EVAL_SUCCESS)),
        plot("Held-out return by temperature", "free", at_each(names::EVAL_RETURN)),
        plot(
            "Loss, nats per token",
            "free",
            series(&[(names::CRITIC_LOSS, "critic"), (names::POLICY_LOSS, "policy")]),
        ),
        plot(
            "Share of Yes",
            "share",
            series(&[
                (names::VERDICT_YES, "all"),
                (names::YES_ON_SUCCESS, "solved episodes"),
                (names::YES_ON_FAILURE, "failed episodes"),
            ]),
        ),
        plot(
            "Refinements",
            "share",
            series(&[
                (names::REFINEMENT_CHANGED, "changed"),
                (names::REFINEMENT_VALID, "readable"),
            ]),
        ),
        plot(
            "Bellman targets",
            "share",
            series(&[
                (names::TARGETS_ACCEPTED, "accepted"),
                (names::TARGETS_LEAKED, "leaked"),
                (names::TARGETS_MISQUOTED, "misquoted"),
                (names::TARGETS_UNPARSEABLE, "unparseable"),
            ]),
        ),
        plot(
            "Prediction collapse",
            "share",
            series(&[
                (names::DISTINCT_PAIRS, "distinct pairs"),
                (names::DUPLICATES, "duplicates"),
                (names::PREDICTIONS_ENDLESS, "without an end"),
            ]),
        ),
        plot(
            "Critic health and forgetting",
            "share",
            series(&[(names::OUTCOME_AUC, "outcome AUC"), (names::GENERAL_FORGOTTEN, "forgotten")]),
        ),
        plot(
            "Unreadable replies",
            "share",
            format!("{}=training|{}", names::COLLECT_UNREADABLE, at_each(names::EVAL_UNREADABLE)),
        ),
        plot("Staleness of replay, iterations", "free", series(&[(names::STALENESS, "mean age")])),
        plot(
            "Steps relabeled with other goals",
            "share",
            series(&[(names::RELABELLED, "relabelled")]),
        ),
    ];
    if let AlgorithmSpec::Nlrl(_) = spec.algorithm {
        let choices =
            [(names::CHOICE_CHANGED, "changed"), (names::CHOICE_UNREADABLE, "unreadable")];
        plots.push(plot("Choices", "share", series(&choices)));
        let read = series(&[(names::VALUE_OUTCOMES, "outcomes")]);
        plots.push(plot("Outcomes per language value", "free", read));
    }
    if matches!(spec.algorithm, AlgorithmSpec::Grpo(_) | AlgorithmSpec::Ppo(_)) {
        let clipped = series(&[(names::CLIP_FRACTION, "clipped tokens")]);
        let moved = series(&[(names::APPROXIMATE_KL, "approximate KL")]);
        plots.push(plot("Clipped tokens", "share", clipped));
        plots.push(plot("Policy movement, nats per token", "free", moved));
    }
    if let AlgorithmSpec::Ppo(_) = spec.algorithm {
        let values = [(names::VALUE_MEAN, "value"), (names::RETURN_MEAN, "return")];
        let fit = [(names::VALUE_LOSS, "loss"), (names::EXPLAINED_VARIANCE, "explained variance")];
        plots.push(plot("Mean value and return", "free", series(&values)));
        plots.push(plot("Critic fit", "free", series(&fit)));
    }
    if let AlgorithmSpec::SacGlam(_) = spec.algorithm {
        let values = [(names::CHOSEN_VALUE, "value"), (names::TARGET_GAP, "target minus value")];
        let losses = [(names::VALUE_LOSS, "critic"), (names::CHOICE_LOSS, "policy")];
        plots.push(plot("Mean value of chosen actions", "free", series(&values)));
        plots.push(plot("Critic and policy loss", "free", series(&losses)));
        plots.push(plot("Policy entropy, nats", "free", series(&[(names::ENTROPY, "entropy")])));
        plots.push(plot("Entropy weight", "free", series(&[(names::ALPHA, "alpha")])));
    }
    plots
}

fn spent(job: &JobRow, totals: &HashMap<String, Total>) -> Vec<(&'static str, String)> {
    let total = |name| totals.get(name).copied().unwrap_or(Total { sum: 0.0, newest: 0.0 });
    let of = |value: f64, budget: Option<u64>| match budget {
        Some(budget) => format!("{} of {}", format::count(value), format::count(budget as f64)),
        None => format::count(value),
    };
    let budget = &job.spec.budget;
    let ended = job.finished_at.unwrap_or_else(time::OffsetDateTime::now_utc);
    let seconds = job.started_at.map_or(0.0, |start| (ended - start).as_seconds_f64());
    let tokens = [names::GENERATED_TOKENS, names::PROMPT_TOKENS, names::TRAINED_TOKENS];
    let tokens = tokens.into_iter().map(|name| total(name).sum).sum();
    let owner = (job.owner != LOCAL).then(|| ("owner", job.owner.clone()));
    let mut spent = vec![
        ("environment steps", of(total(names::ENV_STEPS).newest, budget.env_steps)),
        ("optimizer steps", of(total(names::OPTIMIZER_STEPS).sum, budget.optimizer_steps)),
        ("tokens", of(tokens, budget.tokens)),
        ("time", format::span(seconds)),
    ];
    spent.extend(owner);
    spent
}

/// Measurements of the newest iterations.
struct Shown {
    iterations: std::ops::Range<i32>,
    /// By series and iteration; evaluations at the spec's temperature.
    values: HashMap<(String, i32), f64>,
}

impl Shown {
    /// Every series that the code below reads.
    fn names() -> Vec<String> {
        let columns = [
            names::EVAL_SUCCESS,
            names::CRITIC_LOSS,
            names::POLICY_LOSS,
            names::VERDICT_YES,
            names::REFINEMENT_CHANGED,
            names::ITERATION_SECONDS,
        ];
        let phases = Phase::ALL.iter().flat_map(|phase| [seconds(*phase), names::busy(*phase)]);
        columns.into_iter().map(str::to_owned).chain(phases).collect()
    }

    fn value(&self, name: &str, index: i32) -> Option<f64> {
        self.values.get(&(name.to_owned(), index)).copied()
    }

    /// Seconds of each phase.
    fn phases(&self) -> Vec<(i32, Vec<Span>)> {
        let of = |index| {
            let spans = Phase::ALL.iter().filter_map(|phase| {
                let took = self.value(&seconds(*phase), index)?;
                let busy = self.value(&names::busy(*phase), index).unwrap_or(took).min(took);
                Some(Span { phase: phase.as_str(), busy, idle: took - busy })
            });
            (index, spans.collect())
        };
        self.iterations.clone().map(of).collect()
    }

    fn rows(&self) -> Vec<IterationRow> {
        let of = |index| {
            let value = |name| self.value(name, index);
            IterationRow {
                index,
                success: format::percent(value(names::EVAL_SUCCESS)),
                critic_loss: format::digits(value(names::CRITIC_LOSS), 3),
                policy_loss: format::digits(value(names::POLICY_LOSS), 3),
                yes: format::percent(value(names::VERDICT_YES)),
                changed: format::percent(value(names::REFINEMENT_CHANGED)),
                seconds: format::digits(value(names::ITERATION_SECONDS), 1),
            }
        };
        self.iterations.clone().rev().map(of).collect()
    }
}

/// The series of a phase's seconds.
fn seconds(phase: Phase) -> String {
    format!("{}{phase}", names::PHASE_SECONDS_PREFIX)
}
