//! What people decide about a checkpoint: that it is the one to use, or that its job goes on from it.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{Method, Uri},
};
use garde::Validate;
use serde::Deserialize;
use serde_json::json;
use sqlx::PgConnection;
use utoipa::ToSchema;

use super::{
    AppState,
    extract::Optional,
    problem::{Allow, Problem, no_such_route},
    view::checkpoints::CheckpointView,
};
use crate::{
    domain::{
        access::Actor,
        checkpoint::CheckpointRole,
        event::EventKind,
        ids::CheckpointId,
        job::{Job, JobStatus},
    },
    store::{
        StoreError, events, iterations, jobs,
        read::jobs::{self as read_jobs, CheckpointRow},
    },
};

/// What can be decided.
pub(super) const VERBS: [&str; 3] = ["promote", "demote", "roll_back"];

/// Why; the body may be left out.
#[derive(Debug, Default, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// For those who read the job's events.
    #[garde(inner(length(min = 1, max = 500)))]
    #[schema(min_length = 1, max_length = 500)]
    reason: Option<String>,
}

/// What somebody decided.
struct Decided {
    actor: Actor,
    decision: Decision,
}

impl Decided {
    /// What happened, by whom, and why.
    fn said(&self, what: String) -> String {
        let by = self.actor.key.map(|_| format!(" by {}", self.actor.name)).unwrap_or_default();
        let why = self.decision.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{what}{by}{why}")
    }
}

/// The decisions, which stand behind a checkpoint's id: `POST /v1/checkpoints/ID:promote`.
pub(super) async fn decide(
    State(state): State<AppState>,
    Extension(actor): Extension<Actor>,
    Path(target): Path<String>,
    method: Method,
    uri: Uri,
    Optional(decision): Optional<Decision>,
) -> Result<Json<CheckpointView>, Problem> {
    let Some((id, verb)) = target.split_once(':') else {
        return Err(Problem::not_allowed(&method, &uri, Allow::Read));
    };
    let id = id
        .parse()
        .map_err(|_| Problem::bad_request(format!("{id:?} is not an id; ids are UUIDs")))?;
    match verb {
        "promote" => promote(&state, id, &Decided { actor, decision }).await,
        "demote" => demote(&state, id, &Decided { actor, decision }).await,
        "roll_back" => roll_back(&state, id, &Decided { actor, decision }).await,
        _ => Err(no_such_route(uri).await),
    }
}

/// A method that neither reads nor decides.
pub(super) async fn other(Path(target): Path<String>, method: Method, uri: Uri) -> Problem {
    let allow = if target.contains(':') { Allow::Post } else { Allow::Read };
    Problem::not_allowed(&method, &uri, allow)
}

/// Promotes a checkpoint: it is the one that the job names from now on, that questions to the job go to, and that
/// its engine keeps loaded. The one that was promoted before is not any more.
#[utoipa::path(
    post, path = "/v1/checkpoints/{id}:promote", tag = "jobs", operation_id = "promote_checkpoint",
    params(("id" = CheckpointId, Path)), request_body = Decision,
    responses(
        (status = 200, description = "It is promoted", body = CheckpointView),
        (status = 400, body = Problem, description = "Not an id, or not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "It is not published yet, or its files are deleted", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "A target's average, which nobody acts by", content_type = "application/problem+json"),
    )
)]
async fn promote(
    state: &AppState,
    id: CheckpointId,
    decided: &Decided,
) -> Result<Json<CheckpointView>, Problem> {
    let mut tx = state.store.begin().await?;
    let (checkpoint, job) = locked(&mut tx, id).await?;
    if checkpoint.published_at.is_none() {
        return Err(Problem::conflict(format!("{} is not published yet", checkpoint.name))
            .remedy("wait until its iteration has published it"));
    }
    if !checkpoint.promoted {
        jobs::promote(&mut tx, job.id, Some(id)).await?;
        let solved = checkpoint.success.map(|s| format!(", which solved {:.1} %", 100.0 * s));
        let message = decided.said(format!(
            "version {} is promoted{}",
            checkpoint.version,
            solved.unwrap_or_default()
        ));
        let data = json!({
            "checkpoint_id": id, "version": checkpoint.version, "name": checkpoint.name,
            "success": checkpoint.success, "reason": decided.decision.reason, "by": decided.actor.name,
        });
        events::append(&mut tx, job.id, EventKind::Promoted, &message, data).await?;
    }
    tx.commit().await.map_err(StoreError::from)?;
    // An engine that is away gets it when it is back.
    if let Err(error) = state.critic.keep(id).await {
        let mut conn = state.store.acquire().await?;
        let message =
            format!("the promoted adapter {} is not loaded yet: {error}", checkpoint.name);
        events::append(&mut conn, job.id, EventKind::Warned, &message, json!({})).await?;
    }
    read(state, id).await
}

/// Takes a promotion back: the job has no promoted checkpoint then.
#[utoipa::path(
    post, path = "/v1/checkpoints/{id}:demote", tag = "jobs", operation_id = "demote_checkpoint",
    params(("id" = CheckpointId, Path)), request_body = Decision,
    responses(
        (status = 200, description = "It is not promoted", body = CheckpointView),
        (status = 400, body = Problem, description = "Not an id, or not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "Its files are deleted", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "A target's average", content_type = "application/problem+json"),
    )
)]
async fn demote(
    state: &AppState,
    id: CheckpointId,
    decided: &Decided,
) -> Result<Json<CheckpointView>, Problem> {
    let mut tx = state.store.begin().await?;
    let (checkpoint, job) = locked(&mut tx, id).await?;
    if checkpoint.promoted {
        jobs::promote(&mut tx, job.id, None).await?;
        let message =
            decided.said(format!("version {} is not promoted any more", checkpoint.version));
        let data = json!({
            "checkpoint_id": id, "version": checkpoint.version, "reason": decided.decision.reason,
            "by": decided.actor.name,
        });
        events::append(&mut tx, job.id, EventKind::Demoted, &message, data).await?;
    }
    tx.commit().await.map_err(StoreError::from)?;
    read(state, id).await
}

/// Sends a job that is running or paused back: its next iteration goes on from this checkpoint. The iteration under
/// way ends as it began. A person's word stands over that of a guard.
#[utoipa::path(
    post, path = "/v1/checkpoints/{id}:roll_back", tag = "jobs", operation_id = "roll_back_to_checkpoint",
    params(("id" = CheckpointId, Path)), request_body = Decision,
    responses(
        (status = 200, description = "The next iteration goes on from it", body = CheckpointView),
        (status = 400, body = Problem, description = "Not an id, or not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "No iteration follows, or its files are deleted", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "A target's average, which nobody learns from", content_type = "application/problem+json"),
    )
)]
async fn roll_back(
    state: &AppState,
    id: CheckpointId,
    decided: &Decided,
) -> Result<Json<CheckpointView>, Problem> {
    let mut tx = state.store.begin().await?;
    // The planner takes the same lock: no iteration begins in between.
    let (checkpoint, job) = locked(&mut tx, id).await?;
    if !matches!(job.status, JobStatus::Running | JobStatus::Paused) {
        return Err(Problem::conflict(format!("the job is {}, so it does not go on", job.status))
            .remedy("promote the checkpoint to use it; submit the spec as a new job to learn on"));
    }
    let newest = iterations::under_way(&mut tx, job.id).await?.pop();
    let Some(newest) = newest.filter(|newest| !newest.last) else {
        return Err(Problem::conflict("the iteration under way is the last")
            .remedy("promote the checkpoint to use it"));
    };
    iterations::roll_back(&mut tx, newest.id, checkpoint.version, true).await?;
    let message = decided.said(format!(
        "after iteration {} the job goes on from version {}",
        newest.index, checkpoint.version
    ));
    let data = json!({
        "iteration": newest.index, "version": checkpoint.version, "success": checkpoint.success,
        "reason": decided.decision.reason, "by": decided.actor.name,
    });
    events::append(&mut tx, job.id, EventKind::RolledBack, &message, data).await?;
    tx.commit().await.map_err(StoreError::from)?;
    read(state, id).await
}

/// A checkpoint that somebody acts by, and its job, locked.
async fn locked(
    conn: &mut PgConnection,
    id: CheckpointId,
) -> Result<(CheckpointRow, Job), Problem> {
    let gone = || Problem::not_found("checkpoint", id);
    let find =
        async |conn: &mut PgConnection| read_jobs::checkpoints(conn, None, Some(id), None, 1).await;
    let job_id = find(conn).await?.pop().ok_or_else(gone)?.job_id;
    let job = jobs::lock(conn, job_id).await?.ok_or_else(gone)?;
    let checkpoint = find(conn).await?.pop().ok_or_else(gone)?;
    if checkpoint.expired_at.is_some() {
        return Err(Problem::expired(&checkpoint.name));
    }
    if checkpoint.role != CheckpointRole::Online {
        let detail = format!("{} is a target's average, by which nobody acts", checkpoint.name);
        return Err(Problem::unprocessable(detail)
            .remedy(format!("take the online checkpoint of version {}", checkpoint.version)));
    }
    Ok((checkpoint, job))
}

async fn read(state: &AppState, id: CheckpointId) -> Result<Json<CheckpointView>, Problem> {
    let mut conn = state.store.acquire().await?;
    let mut found = read_jobs::checkpoints(&mut conn, None, Some(id), None, 1).await?;
    let row = found.pop().ok_or_else(|| Problem::not_found("checkpoint", id))?;
    Ok(Json(row.into()))
}
