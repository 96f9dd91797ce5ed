//! The newest transitions of a job. They refresh while the job runs and nobody reads them.

use askama::Template;
use axum::{extract::State, response::Html};
use sqlx::PgConnection;

use super::{Card, found, render};
use crate::{
    api::{AppState, extract::Id, problem::Problem},
    domain::ids::JobId,
    store::{
        StoreError,
        read::{
            jobs::JobRow,
            transitions::{self, Search},
        },
        window::Window,
    },
};

/// Transitions on the page.
const SHOWN: usize = 6;
/// Transitions that they are chosen from.
const RECENT: i64 = 60;

#[derive(Template)]
#[template(path = "job_newest.html")]
pub(super) struct Newest {
    id: String,
    /// The job is over, so no transition follows.
    over: bool,
    /// The job trains a policy. An evaluation stores no transitions.
    trains: bool,
    transitions: Vec<Card>,
}

/// Reads the newest transitions. Those with a critique come first, because users look for these.
pub(super) async fn of(conn: &mut PgConnection, job: &JobRow) -> Result<Newest, StoreError> {
    let newest = Search { job: Some(job.id), ..Search::default() };
    let newest = transitions::search(conn, &newest, &Window::first(RECENT)).await?;
    let newest = transitions::rows(conn, &newest.rows).await?;
    let (read, unread): (Vec<_>, Vec<_>) = newest.into_iter().partition(|t| t.critique.is_some());
    Ok(Newest {
        id: job.id.to_string(),
        over: job.status.is_final(),
        trains: job.spec.algorithm.trains(),
        transitions: read.into_iter().chain(unread).take(SHOWN).map(Card::of).collect(),
    })
}

/// The transitions alone.
pub(in crate::api::page) async fn part(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
) -> Result<Html<String>, Problem> {
    let job = found(&state, id).await?;
    render(&of(&mut *state.store.acquire().await?, &job).await?)
}
