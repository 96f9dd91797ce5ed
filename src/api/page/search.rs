//! Search over actions, critiques and refinements.

use askama::Template;
use axum::{extract::State, response::Html};
use serde::{Deserialize, Serialize};

use super::{render, transition::Card};
use crate::{
    api::{
        AppState,
        extract::Params,
        problem::Problem,
        transitions::{TransitionQuery, found},
    },
    domain::ids::{JobId, TransitionId},
    store::read::jobs as read_jobs,
};

/// Cards at a time.
const CARDS: i64 = 24;

/// Fields of the form. Optional fields may be empty.
#[derive(Deserialize, Serialize, Clone, Default)]
#[serde(default)]
pub(super) struct Form {
    q: String,
    verdict: String,
    success: String,
    changed: String,
    target_status: String,
    from_iteration: String,
    job: String,
    after: String,
}

/// Value, label, chosen.
type Choice = (&'static str, &'static str, bool);

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    here: &'static str,
    q: String,
    verdicts: Vec<Choice>,
    outcomes: Vec<Choice>,
    changes: Vec<Choice>,
    targets: Vec<Choice>,
    from: String,
    jobs: Vec<(String, String, bool)>,
    results: Results,
}

#[derive(Template)]
#[template(path = "search_results.html")]
struct Results {
    first: bool,
    cards: Vec<Card>,
    /// The query of the next page.
    more: Option<String>,
}

/// The page.
pub(super) async fn page(
    State(state): State<AppState>,
    Params(form): Params<Form>,
) -> Result<Html<String>, Problem> {
    let results = results_of(&state, &form).await?;
    let mut conn = state.store.acquire().await?;
    let jobs = read_jobs::titles(&mut conn, read(&form.job, "job")?, 100).await?;
    drop(conn);
    let choices = |all: &[(&'static str, &'static str)], chosen: &str| {
        all.iter().map(|&(value, label)| (value, label, value == chosen)).collect()
    };
    render(&Page {
        here: "/search",
        verdicts: choices(
            &[("", "any"), ("yes", "Yes"), ("no", "No"), ("unparseable", "unreadable")],
            &form.verdict,
        ),
        outcomes: choices(
            &[("", "any"), ("true", "solved"), ("false", "not solved")],
            &form.success,
        ),
        changes: choices(
            &[("", "any"), ("true", "changed"), ("false", "unchanged")],
            &form.changed,
        ),
        targets: choices(
            &[
                ("", "any"),
                ("accepted", "accepted"),
                ("misquoted", "misquoted"),
                ("unparseable", "unreadable"),
                ("leaked", "leaked"),
            ],
            &form.target_status,
        ),
        jobs: jobs
            .into_iter()
            .map(|job| {
                let id = job.id.to_string();
                let chosen = id == form.job;
                (id.clone(), format!("{} {}", job.name, &id[id.len() - 6..]), chosen)
            })
            .collect(),
        q: form.q,
        from: form.from_iteration,
        results,
    })
}

/// The results alone.
pub(super) async fn results(
    State(state): State<AppState>,
    Params(form): Params<Form>,
) -> Result<Html<String>, Problem> {
    render(&results_of(&state, &form).await?)
}

async fn results_of(state: &AppState, form: &Form) -> Result<Results, Problem> {
    let query = TransitionQuery {
        q: read(&form.q, "q")?,
        verdict: read(&form.verdict, "verdict")?,
        success: read(&form.success, "success")?,
        changed: read(&form.changed, "changed")?,
        target_status: read(&form.target_status, "target_status")?,
        from_iteration: read(&form.from_iteration, "from_iteration")?,
        to_iteration: None,
        after: read::<TransitionId>(&form.after, "after")?,
        limit: Some(CARDS),
    };
    let job: Option<JobId> = read(&form.job, "job")?;
    let mut conn = state.store.acquire().await?;
    let page = found(&mut conn, job, &query).await?;
    let more = page.next.map(|next| Form { after: next.to_string(), ..form.clone() });
    let more = more.map(serde_urlencoded::to_string).transpose();
    Ok(Results {
        first: form.after.is_empty(),
        cards: page.rows.into_iter().map(Card::of).collect(),
        more: more.map_err(|e| Problem::bad_request(e.to_string()))?,
    })
}

/// A field of the form. An empty one has no value.
fn read<T: std::str::FromStr>(text: &str, field: &str) -> Result<Option<T>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let unreadable = |_| Problem::bad_request(format!("{field}: cannot parse {text:?}"));
    text.parse().map(Some).map_err(unreadable)
}
