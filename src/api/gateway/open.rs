//! Opening episodes for agents, and looking at them.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use super::{
    super::{
        AppState,
        extract::{Id, Params, Valid, limit},
        idempotency::{self, Once},
        problem::Problem,
    },
    base_url,
};
use crate::{
    domain::{
        access::Actor,
        ids::{CheckpointId, EpisodeId, JobId},
    },
    gateway::{Opened, OpenedState},
    store::{StoreError, checkpoints, gateway, jobs, peers},
};

/// Most calls of an episode, unless it says otherwise.
pub(super) const CALLS: i32 = 200;
/// Seconds without a call after which an episode is truncated, unless it says otherwise.
pub(super) const IDLE: i32 = 3600;

/// Why an agent's tools have no effect.
const TOOLS_LEFT_OUT: &str = "the chat template of the model leaves tools out: the model does not see the tools that your \
                              agent sends; describe them in a message, or take a model whose template shows them";

/// An episode that an agent is to play.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct NewEpisode {
    /// The task, by a name of yours: success is counted by it.
    #[serde(default)]
    #[garde(length(max = 500))]
    #[schema(max_length = 500)]
    task: String,
    /// The checkpoint of the job that answers all calls; the newest at each call unless given.
    #[garde(skip)]
    checkpoint_id: Option<CheckpointId>,
    /// A registered chat engine that answers instead of the job's policy. The job still learns from the episode.
    #[garde(inner(length(min = 1, max = 100)))]
    #[schema(min_length = 1, max_length = 100)]
    engine: Option<String>,
    /// Temperature of all calls, in place of what the agent asks for.
    #[garde(inner(range(min = 0.0, max = 2.0)))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    temperature: Option<f32>,
    /// Most tokens of an answer, in place of what the agent asks for.
    #[garde(inner(range(min = 1, max = 32_768)))]
    #[schema(minimum = 1, maximum = 32_768)]
    max_tokens: Option<i32>,
    /// Most calls. Further ones are refused, so that an agent in an endless loop ends.
    #[serde(default = "calls")]
    #[garde(range(min = 1, max = 2_000))]
    #[schema(minimum = 1, maximum = 2_000, default = 200)]
    most_calls: i32,
    /// Seconds without a call after which the episode is truncated.
    #[serde(default = "idle")]
    #[garde(range(min = 1, max = 604_800))]
    #[schema(minimum = 1, maximum = 604_800, default = 3600)]
    idle_seconds: i32,
}

const fn calls() -> i32 {
    CALLS
}

const fn idle() -> i32 {
    IDLE
}

/// An episode that an agent plays.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenedView {
    /// Its id. Once it has ended, `GET /v1/episodes/{id}` shows what happened.
    pub id: EpisodeId,
    /// The job whose policy answers, and that learns from it.
    pub job_id: Option<JobId>,
    /// The chat engine that answers instead of the policy; null where the policy does.
    pub engine: Option<String>,
    /// The checkpoint that answers; null where the newest does.
    pub checkpoint_id: Option<CheckpointId>,
    /// Name of the key that opened it.
    pub owner: String,
    /// The agent's own name for it; null where it shows a key of the episode's.
    pub name: Option<String>,
    /// The task.
    pub task: String,
    /// Temperature in place of what the agent asks for.
    pub temperature: Option<f32>,
    /// Most tokens of an answer in place of what the agent asks for.
    pub max_tokens: Option<i32>,
    /// Most calls.
    pub most_calls: i32,
    /// Seconds without a call after which it is truncated.
    pub idle_seconds: i32,
    /// How it stands.
    pub state: OpenedState,
    /// Calls that are stored.
    pub calls: i32,
    /// When it was opened.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// When it was last called, or opened.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_call_at: OffsetDateTime,
    /// When it ended; null while it is open.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<OffsetDateTime>,
}

impl From<Opened> for OpenedView {
    fn from(row: Opened) -> Self {
        Self {
            id: row.id,
            job_id: row.job_id,
            engine: row.engine,
            checkpoint_id: row.checkpoint_id,
            owner: row.owner,
            name: row.name,
            task: row.task,
            temperature: row.temperature,
            max_tokens: row.max_tokens,
            most_calls: row.most_calls,
            idle_seconds: row.idle_seconds,
            state: row.state,
            calls: row.calls,
            created_at: row.created_at,
            last_call_at: row.last_call_at,
            ended_at: row.ended_at,
        }
    }
}

/// An episode with what its agent needs.
#[derive(Serialize, ToSchema)]
pub struct EpisodeMade {
    /// The episode.
    #[serde(flatten)]
    episode: OpenedView,
    /// The key of the episode's agent: it may call in this episode, and nothing else.
    #[schema(example = "nlac_5f0c…")]
    api_key: String,
    /// Base URL for OpenAI's clients. Anthropic's clients take it without `/v1`.
    #[schema(example = "http://localhost:8470/v1")]
    base_url: String,
    /// What may not work as you expect.
    warnings: Vec<String>,
}

/// A page of episodes that agents play.
#[derive(Serialize, ToSchema)]
pub struct OpenedList {
    /// Newest first.
    data: Vec<OpenedView>,
    /// Pass it as `after` for the next page; null at the end.
    next: Option<EpisodeId>,
}

/// Which episodes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct OpenedQuery {
    /// Only episodes in this state.
    state: Option<OpenedState>,
    /// The cursor that the page before gave.
    after: Option<EpisodeId>,
    /// Rows: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Opens an episode: an agent of yours plays it by calling the model at `base_url` with `api_key`. The job's policy answers,
/// and every call is stored.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/episodes", tag = "gateway", operation_id = "open_episode",
    params(("id" = JobId, Path),
        ("Idempotency-Key" = Option<String>, Header, description = idempotency::ABOUT, min_length = 1, max_length = 255, pattern = "^[!-~]+$")),
    request_body = NewEpisode,
    responses(
        (status = 200, description = "Opened before with this idempotency key", body = EpisodeMade),
        (status = 201, description = "The episode, its key and the base URL", body = EpisodeMade),
        (status = 400, body = Problem, description = "Not an id, or not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job, checkpoint or engine", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "It cannot be opened as things stand", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "An impossible episode", content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn open(
    State(state): State<AppState>,
    Extension(actor): Extension<Actor>,
    headers: HeaderMap,
    Id(job): Id<JobId>,
    once: Once<Valid<NewEpisode>>,
) -> Result<Response, Problem> {
    let mut once = once.of("open_episode");
    let mut tx = state.store.begin().await?;
    let found = jobs::get(&mut tx, job).await?.ok_or_else(|| Problem::not_found("job", job))?;
    let engines = peers::engines(&mut tx).await?;
    let named = |name: &str| engines.iter().find(|engine| engine.record.name == name);
    let shows_tools = named(&found.spec.model.engine)
        .and_then(|engine| state.discover.shows_tools(&engine.record));
    let made = |status: StatusCode, episode: Opened| {
        let api_key = state.service_key.episode(episode.id).reveal().to_owned();
        let base_url = base_url(&headers);
        let blind = episode.engine.is_none() && shows_tools == Some(false);
        let warnings = blind.then(|| TOOLS_LEFT_OUT.to_owned()).into_iter().collect();
        let made = EpisodeMade { episode: episode.into(), api_key, base_url, warnings };
        (status, Json(made)).into_response()
    };
    if let Some(earlier) = once.earlier(&mut tx, &actor).await? {
        return Ok(made(StatusCode::OK, by_text(&mut tx, &earlier).await?));
    }
    let Valid(new) = once.body()?;
    if let Some(id) = new.checkpoint_id {
        let checkpoint = checkpoints::get(&mut tx, id).await?;
        let checkpoint = checkpoint.filter(|checkpoint| checkpoint.job_id == job);
        let checkpoint =
            checkpoint.ok_or_else(|| Problem::not_found("checkpoint of this job", id))?;
        if checkpoint.expired_at.is_some() {
            return Err(Problem::expired(&checkpoint.name));
        }
    }
    if let Some(name) = &new.engine {
        let engine = named(name);
        let engine = engine.ok_or_else(|| Problem::not_found("engine", name))?;
        if engine.record.kind.serves_adapters() {
            return Err(Problem::unprocessable(format!(
                "engine {name} serves adapters: it is asked by a job's policy"
            ))
            .remedy("leave `engine` out, or register the server as an engine of kind `openai`"));
        }
    }
    let now = state.clock.now();
    let episode = Opened {
        id: EpisodeId::new(),
        job_id: Some(found.id),
        engine: new.engine,
        checkpoint_id: new.checkpoint_id,
        owner: actor.name.clone(),
        name: None,
        task: new.task,
        temperature: new.temperature,
        max_tokens: new.max_tokens,
        most_calls: new.most_calls,
        idle_seconds: new.idle_seconds,
        state: OpenedState::Open,
        calls: 0,
        created_at: now,
        last_call_at: now,
        ended_at: None,
    };
    if let Some(earlier) = once.keep(&mut tx, &actor, episode.id).await? {
        drop(tx);
        let mut conn = state.store.acquire().await?;
        return Ok(made(StatusCode::OK, by_text(&mut conn, &earlier).await?));
    }
    let hash = state.service_key.episode(episode.id).hash();
    gateway::open(&mut tx, &episode, Some(&hash)).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(made(StatusCode::CREATED, episode))
}

async fn by_text(conn: &mut sqlx::PgConnection, id: &str) -> Result<Opened, Problem> {
    let found = match id.parse() {
        Ok(id) => gateway::get(conn, id).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| Problem::not_found("episode", id))
}

/// Lists the episodes that agents play or have played for a job, newest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/gateway", tag = "gateway", operation_id = "list_gateway_episodes",
    params(("id" = JobId, Path), OpenedQuery),
    responses(
        (status = 200, description = "A page of episodes", body = OpenedList),
        (status = 400, body = Problem, description = "A query that cannot be read", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn list(
    State(state): State<AppState>,
    Id(id): Id<JobId>,
    Params(query): Params<OpenedQuery>,
) -> Result<Json<OpenedList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    if jobs::get(&mut conn, id).await?.is_none() {
        return Err(Problem::not_found("job", id));
    }
    let rows = gateway::of_job(&mut conn, id, query.state, query.after, limit).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|row| row.id);
    Ok(Json(OpenedList { data: rows.into_iter().map(Into::into).collect(), next }))
}
