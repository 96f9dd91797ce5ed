//! The first page: jobs, one job's curve and phase, its newest transitions. Rendered here, polled by a
//! few lines of script; every text is escaped.

mod chart;

use askama::Template;
use axum::{
    extract::{Path, State},
    http::header,
    response::{Html, IntoResponse, Response},
};

use super::{AppState, extract::Id, problem::Problem};
use crate::{
    domain::{
        annotation::Verdict,
        event::EventKind,
        ids::JobId,
        job::JobStatus,
        metric::{Metric, names},
    },
    store::read::{
        experience::{self, TransitionFilter, TransitionView},
        jobs::{self as read_jobs, EventView, JobView},
    },
};

#[derive(rust_embed::Embed)]
#[folder = "assets/"]
struct Assets;

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    live: ListLive,
}

#[derive(Template)]
#[template(path = "list_live.html")]
struct ListLive {
    jobs: Vec<JobRow>,
}

struct JobRow {
    id: String,
    name: String,
    status: JobStatus,
    progress: String,
    before: String,
    now: String,
    started: String,
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    name: String,
    live: JobLive,
}

#[derive(Template)]
#[template(path = "job_live.html")]
struct JobLive {
    id: String,
    status: JobStatus,
    over: bool,
    error: Option<String>,
    progress: String,
    phase: String,
    done: i64,
    units: i64,
    before: String,
    now: String,
    success: String,
    critic: String,
    happened: Vec<Happening>,
    rows: Vec<IterationRow>,
    transitions: Vec<TransitionCard>,
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

struct TransitionCard {
    id: String,
    iteration: i32,
    step: i32,
    state: Vec<(String, String)>,
    action: String,
    observation: String,
    verdict: Option<Verdict>,
    critique: String,
    /// The words of the refinement, and whether each is new.
    refinement: Vec<(String, bool)>,
    unchanged: bool,
}

/// The list of jobs.
pub(super) async fn list(State(state): State<AppState>) -> Result<Html<String>, Problem> {
    render(&ListPage { live: jobs(&state).await? })
}

/// The part of it that changes.
pub(super) async fn list_live(State(state): State<AppState>) -> Result<Html<String>, Problem> {
    render(&jobs(&state).await?)
}

/// One job.
pub(super) async fn job(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
) -> Result<Html<String>, Problem> {
    let (name, live) = one(&state, id).await?;
    render(&JobPage { name, live })
}

/// The part of it that changes.
pub(super) async fn live(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
) -> Result<Html<String>, Problem> {
    render(&one(&state, id).await?.1)
}

/// Style and script.
pub(super) async fn asset(Path(file): Path<String>) -> Result<Response, Problem> {
    let kind = match file.rsplit('.').next() {
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let asset = Assets::get(&file).ok_or_else(|| Problem::not_found("asset", &file))?;
    Ok(([(header::CONTENT_TYPE, kind)], asset.data.into_owned()).into_response())
}

fn render(page: &impl Template) -> Result<Html<String>, Problem> {
    page.render().map(Html).map_err(|error| {
        tracing::error!(%error, "a page cannot be rendered");
        Problem::with_status(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "the page is broken")
    })
}

fn minute(at: time::OffsetDateTime) -> String {
    format!("{} {:02}:{:02}", at.date(), at.hour(), at.minute())
}

fn happening(event: EventView) -> Happening {
    Happening { at: minute(event.at), kind: event.kind, message: event.message }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{:.1} %", 100.0 * v))
}

fn progress(job: &JobView) -> String {
    let of = job.spec.budget.iterations;
    job.iteration.map_or_else(|| "–".into(), |i| format!("{i} of {of}"))
}

async fn jobs(state: &AppState) -> Result<ListLive, Problem> {
    let mut conn = state.store.acquire().await?;
    let jobs = read_jobs::page(&mut conn, None, None, None, 100).await?;
    let jobs = jobs
        .into_iter()
        .map(|job| JobRow {
            id: job.id.to_string(),
            name: job.spec.name.clone(),
            status: job.status,
            progress: progress(&job),
            before: percent(job.success_before),
            now: percent(job.success),
            started: minute(job.created_at),
        })
        .collect();
    Ok(ListLive { jobs })
}

async fn one(state: &AppState, id: JobId) -> Result<(String, JobLive), Problem> {
    let mut conn = state.store.acquire().await?;
    let mut found = read_jobs::page(&mut conn, Some(id), None, None, 1).await?;
    let job = found.pop().ok_or_else(|| Problem::not_found("job", id))?;
    let metrics = read_jobs::metrics(&mut conn, id, None).await?;
    let filter = TransitionFilter { job: Some(id), ..TransitionFilter::default() };
    let newest = experience::transitions(&mut conn, filter, 60).await?;
    let happened = read_jobs::remarkable_events(&mut conn, id, 20).await?;
    drop(conn);

    let quoted = job.spec.evaluation.temperature;
    let series = |name: &str, temperature: Option<f32>| -> Vec<(i32, f64)> {
        metrics
            .iter()
            .filter(|m| m.name == name && m.temperature == temperature)
            .map(|m| (m.iteration, m.value))
            .collect()
    };
    let last = i32::try_from(job.spec.budget.iterations).unwrap_or(i32::MAX);
    // Those that the critic has read come first: they are what one looks for.
    let (read, unread): (Vec<_>, Vec<_>) = newest.into_iter().partition(|t| t.critique.is_some());
    let transitions = read.into_iter().chain(unread).take(12).map(card).collect();
    let live = JobLive {
        id: id.to_string(),
        status: job.status,
        over: job.status.is_final(),
        error: job.error.clone(),
        progress: progress(&job),
        phase: job.phase.map_or_else(String::new, |phase| phase.to_string()),
        done: job.units_done.unwrap_or(0),
        units: job.units.unwrap_or(0).max(1),
        before: percent(job.success_before),
        now: percent(job.success),
        success: chart::line(&series(names::EVAL_SUCCESS, Some(quoted)), last, Some(1.0)),
        critic: chart::line(&series(names::CRITIC_LOSS, None), last, None),
        happened: happened.into_iter().map(happening).collect(),
        rows: rows(&metrics, quoted),
        transitions,
    };
    Ok((job.spec.name.clone(), live))
}

fn rows(metrics: &[Metric], quoted: f32) -> Vec<IterationRow> {
    let newest = metrics.iter().map(|m| m.iteration).max().unwrap_or(0);
    (0..=newest)
        .rev()
        .take(12)
        .map(|index| {
            let find = |name: &str, temperature: Option<f32>| {
                metrics
                    .iter()
                    .find(|m| {
                        m.name == name && m.iteration == index && m.temperature == temperature
                    })
                    .map(|m| m.value)
            };
            let digits = |value: Option<f64>, n: usize| {
                value.map_or_else(|| "–".into(), |v| format!("{v:.n$}"))
            };
            IterationRow {
                index,
                success: percent(find(names::EVAL_SUCCESS, Some(quoted))),
                critic_loss: digits(find(names::CRITIC_LOSS, None), 3),
                policy_loss: digits(find(names::POLICY_LOSS, None), 3),
                yes: percent(find(names::VERDICT_YES, None)),
                changed: percent(find(names::REFINEMENT_CHANGED, None)),
                seconds: digits(find(names::ITERATION_SECONDS, None), 1),
            }
        })
        .collect()
}

fn card(view: TransitionView) -> TransitionCard {
    let before: Vec<_> = view.action.split_whitespace().collect();
    let refined = view.refinement.unwrap_or_default();
    let refinement =
        refined.split_whitespace().map(|w| (w.to_owned(), !before.contains(&w))).collect();
    TransitionCard {
        id: view.id.to_string(),
        iteration: view.iteration,
        step: view.step,
        state: view
            .state
            .0
            .into_iter()
            .map(|m| (format!("{:?}", m.role).to_lowercase(), m.content))
            .collect(),
        action: view.action,
        observation: view.observation,
        verdict: view.verdict,
        critique: view.critique.unwrap_or_default(),
        refinement,
        unchanged: view.changed == Some(false),
    }
}
