//! A prompt set tried on a stored transition, before a job is given it.

use axum::{
    Json,
    extract::{Path, State},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    NAME,
    texts::{PromptFiles, SampleReplies},
    unusable,
};
use crate::{
    api::{
        AppState,
        extract::Valid,
        problem::{Problem, ProblemCode},
    },
    domain::{
        annotation::{TargetStatus, Verdict},
        ids::TransitionId,
        prompt::PromptPart,
    },
    experience::{
        chat::ChatMessage,
        dry_run::{DryRun, NotTried, PredictedEnd, TextSource, TriedPart, TriedReply},
    },
    store::prompts,
};

/// What a prompt set is tried on.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct DryRunRequest {
    /// The stored transition that each part is rendered on.
    #[garde(skip)]
    transition_id: TransitionId,
    /// Files that are not pushed yet, in place of the stored ones. A whole set needs no stored one.
    #[garde(dive)]
    #[serde(default)]
    files: PromptFiles,
    /// What the parts are supposed to reply.
    #[garde(dive)]
    #[serde(default)]
    replies: SampleReplies,
}

/// What each part would be asked, and what would be read in its reply.
#[derive(Serialize, ToSchema)]
pub struct DryRunAnswer {
    /// The parts that are played at this transition: of the two Bellman parts, one.
    parts: Vec<DryRunPart>,
}

/// What a part would be asked, and what would be read in its reply.
#[derive(Serialize, ToSchema)]
pub struct DryRunPart {
    /// The part.
    part: PromptPart,
    /// The rendered prompt, in chat form.
    messages: Vec<ChatMessage>,
    /// Where those of its variables come from that another part writes.
    variables: Vec<DryRunVariable>,
    /// The reply that was read; null where none was given and none is stored.
    reply: Option<DryRunReply>,
}

/// A variable of a part.
#[derive(Serialize, ToSchema)]
pub struct DryRunVariable {
    /// Its name.
    name: String,
    /// Where its text comes from.
    source: TextSource,
}

/// A reply and what is read in it. What the part does not say is null.
#[derive(Serialize, ToSchema)]
pub struct DryRunReply {
    /// The reply.
    text: String,
    /// Where it comes from.
    source: TextSource,
    /// The evaluator's verdict.
    verdict: Option<Verdict>,
    /// Whether a prediction or a target has the form that the set demands of a target.
    target_form: Option<bool>,
    /// Whether a target would be trained on.
    target_status: Option<TargetStatus>,
    /// How a prediction or a target ends; null where it does not say so.
    outcome: Option<PredictedEnd>,
    /// The action that the policy or the refiner wrote, as the environment tells actions apart.
    action_key: Option<String>,
    /// Why the reply is no action.
    unreadable: Option<String>,
    /// The scalar critic's number.
    value: Option<u32>,
    /// The number of the candidate that the chooser names, from 1.
    choice: Option<usize>,
}

impl From<TriedPart> for DryRunPart {
    fn from(tried: TriedPart) -> Self {
        let variable = |(name, source): (&str, _)| DryRunVariable { name: name.to_owned(), source };
        Self {
            part: tried.part,
            messages: tried.messages.into_iter().map(ChatMessage::from).collect(),
            variables: tried.variables.into_iter().map(variable).collect(),
            reply: tried.reply.map(DryRunReply::from),
        }
    }
}

impl From<TriedReply> for DryRunReply {
    fn from(TriedReply { text, source, reading }: TriedReply) -> Self {
        Self {
            text,
            source,
            verdict: reading.verdict,
            target_form: reading.target_form,
            target_status: reading.target_status,
            outcome: reading.outcome,
            action_key: reading.action_key,
            unreadable: reading.unreadable,
            value: reading.value,
            choice: reading.choice,
        }
    }
}

/// Renders each part of a set on a stored transition, and reads its reply. No engine is asked and nothing is stored.
#[utoipa::path(
    post, path = "/v1/prompts/{name}/dry-run", tag = "prompts", operation_id = "dry_run_prompts",
    params(("name" = String, Path, description = NAME)), request_body = DryRunRequest,
    responses(
        (status = 200, description = "Each part, rendered and read", body = DryRunAnswer),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such set or transition", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "Files that cannot be used; `errors` names each mistake", content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn dry_run(
    State(state): State<AppState>,
    Path(name): Path<String>,
    Valid(request): Valid<DryRunRequest>,
) -> Result<Json<DryRunAnswer>, Problem> {
    let unsaved = request.files.by_part();
    let mut conn = state.store.acquire().await?;
    let newest = prompts::versions(&mut conn, &name).await?.into_iter().next();
    if newest.is_none() && unsaved.is_empty() {
        return Err(Problem::not_found("prompt set", name));
    }
    let mut files = match newest {
        Some(set) => prompts::texts(&mut conn, &set.parts).await?,
        None => Default::default(),
    };
    drop(conn);
    files.extend(unsaved);
    let (transition, replies) = (request.transition_id, request.replies.by_part());
    let asked = DryRun { set: name, files, transition, replies };
    let tried = state.prompts.dry_run(&asked).await?;
    Ok(Json(DryRunAnswer { parts: tried.into_iter().map(DryRunPart::from).collect() }))
}

impl From<NotTried> for Problem {
    fn from(error: NotTried) -> Self {
        let detail = error.to_string();
        match error {
            NotTried::NoTransition(id) => Self::not_found("transition", id),
            NotTried::Mistaken(mistakes) => unusable(mistakes),
            NotTried::NotRendered(_) => Self::unprocessable(detail)
                .code(ProblemCode::PromptNotRendered)
                .remedy("mend the file, or try another transition"),
            NotTried::Unavailable(_) => {
                tracing::error!(error = detail, "a dry run failed at the database");
                Self::unavailable()
            }
        }
    }
}
