//! What a job learnt from, for other tools: one JSON object per line, as many as there are, streamed.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Id, Params},
    problem::Problem,
};
use crate::{
    domain::{
        annotation::Verdict,
        ids::{JobId, TransitionId},
        message::Message,
    },
    store::{
        Store, StoreError, jobs,
        read::transitions::{self, TransitionView},
    },
};

/// Transitions that are read at a time.
const PAGE: i64 = 500;

/// What the lines are.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    /// Transitions, each with its newest critique and refinement.
    Transitions,
    /// Conversations that end with what the policy should say: the refined action, or its own where the
    /// critic approved (`messages`, as TRL's SFT reads them).
    Sft,
    /// Refined against original actions (`prompt`, `chosen`, `rejected`, as TRL's preference trainers read
    /// them).
    Preferences,
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExportQuery {
    /// What the lines are.
    #[param(inline)]
    form: ExportForm,
}

#[derive(Serialize)]
struct Conversation {
    messages: Vec<Message>,
}

#[derive(Serialize)]
struct Preference {
    prompt: Vec<Message>,
    chosen: [Message; 1],
    rejected: [Message; 1],
}

/// Streams a job's transitions as training data for other tools, oldest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/export", tag = "experience", operation_id = "export_job",
    params(("id" = JobId, Path), ExportQuery),
    responses(
        (status = 200, description = "Lines of JSON", content_type = "application/x-ndjson", body = String),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
    )
)]
pub(super) async fn export(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, Problem> {
    if jobs::get(&mut *state.store.acquire().await?, id).await?.is_none() {
        return Err(Problem::not_found("job", id));
    }
    let form = query.form;
    let pages = stream::unfold(Some((state.store, None)), move |at| async move {
        let (store, after) = at?;
        match page(&store, id, after, form).await {
            Ok((lines, next)) => Some((Ok(lines), next.map(|next| (store, Some(next))))),
            // Headers are gone: the connection breaks off, which no client takes for the end.
            Err(error) => {
                tracing::warn!(%error, job.id = %id, "an export broke off");
                Some((Err(error), None))
            }
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    // Compression asks once more after the end.
    Ok((headers, Body::from_stream(pages.fuse())).into_response())
}

/// Lines of the transitions after one of them, and where the next page begins.
async fn page(
    store: &Store,
    job: JobId,
    after: Option<TransitionId>,
    form: ExportForm,
) -> Result<(Bytes, Option<TransitionId>), StoreError> {
    let mut conn = store.acquire().await?;
    let ids = transitions::oldest(&mut conn, job, after, PAGE).await?;
    let views = transitions::views(&mut conn, &ids).await?;
    drop(conn);
    let mut lines = Vec::new();
    for view in views.into_iter().rev() {
        let line = match form {
            ExportForm::Transitions => serde_json::to_vec(&view).ok(),
            ExportForm::Sft => conversation(view).and_then(|line| serde_json::to_vec(&line).ok()),
            ExportForm::Preferences => {
                preference(view).and_then(|line| serde_json::to_vec(&line).ok())
            }
        };
        if let Some(line) = line {
            lines.extend(line);
            lines.push(b'\n');
        }
    }
    let next = ids.last().filter(|_| ids.len() as i64 == PAGE).copied();
    Ok((lines.into(), next))
}

/// An action that was refined to another, if the environment can read it.
fn refined(view: &TransitionView) -> Option<&String> {
    view.refinement.as_ref().filter(|_| view.changed == Some(true) && view.valid == Some(true))
}

fn conversation(view: TransitionView) -> Option<Conversation> {
    let approved = view.verdict == Some(Verdict::Yes) && view.env_action.is_some();
    let said = refined(&view).cloned().or_else(|| approved.then(|| view.action.clone()))?;
    let mut messages = view.state.0;
    messages.push(Message::assistant(said));
    Some(Conversation { messages })
}

fn preference(view: TransitionView) -> Option<Preference> {
    let chosen = [Message::assistant(refined(&view)?.clone())];
    Some(Preference { prompt: view.state.0, chosen, rejected: [Message::assistant(view.action)] })
}
