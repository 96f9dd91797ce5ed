//! Transitions.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::{PgConnection, types::Json};

use super::{
    StoreError,
    rows::{ROWS, json},
};
use crate::{
    domain::{
        generation::FinishReason,
        ids::{EpisodeId, GenerationId, IterationId, JobId, TransitionId},
    },
    experience::{
        context::{Context, Frame, Tool},
        episode::{RewardStatus, Transition},
        message::Message,
    },
};

/// A transition as it is replayed.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The step.
    pub transition: Transition,
    /// s: what the policy saw.
    pub state: Context,
    /// a: its reply.
    pub action: Message,
    /// What the environment answered.
    pub observation: Vec<Message>,
    /// s': what the policy sees next.
    pub next_state: Context,
    /// The action's tokens, as the engine wrote them or as it was imported.
    pub action_tokens: Vec<i32>,
    /// The token limit cut the action. Imported actions are whole: logs do not tell.
    pub action_cut: bool,
    /// Seed of its episode's environment.
    pub episode_seed: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: TransitionId,
    job_id: JobId,
    iteration_id: IterationId,
    episode_id: EpisodeId,
    step: i32,
    state_len: i32,
    next_len: i32,
    action: String,
    env_action: Option<String>,
    observation: String,
    reward: Option<f64>,
    reward_status: RewardStatus,
    done: bool,
    truncated: bool,
    generation_id: Option<GenerationId>,
    action_tokens: Option<Vec<i32>>,
    seed: i64,
    messages: Json<Vec<Message>>,
    tools: Json<Vec<Tool>>,
    token_ids: Option<Vec<i32>>,
    finish_reason: Option<FinishReason>,
}

impl From<Row> for Loaded {
    fn from(row: Row) -> Self {
        let frame = Frame { tools: row.tools.0, ..Frame::default() };
        let whole = Context::new(row.messages.0, frame.into());
        let length = |length: i32| usize::try_from(length).unwrap_or(0);
        let (state, next_state) =
            (whole.prefix(length(row.state_len)), whole.prefix(length(row.next_len)));
        let after = next_state.messages().get(state.messages().len()..);
        let mut after = after.unwrap_or_default().iter().cloned();
        let action = after.next().unwrap_or_else(|| Message::assistant(row.action.as_str()));
        Self {
            observation: after.collect(),
            action,
            state,
            next_state,
            transition: Transition {
                id: row.id,
                job_id: row.job_id,
                iteration_id: row.iteration_id,
                episode_id: row.episode_id,
                step: row.step,
                state_len: row.state_len,
                next_len: row.next_len,
                action: row.action,
                env_action: row.env_action,
                observation: row.observation,
                reward: row.reward,
                reward_status: row.reward_status,
                done: row.done,
                truncated: row.truncated,
                generation_id: row.generation_id,
            },
            action_tokens: row.token_ids.or(row.action_tokens).unwrap_or_default(),
            action_cut: row.finish_reason == Some(FinishReason::Length),
            episode_seed: row.seed,
        }
    }
}

/// Stores transitions that were collected.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(
    conn: &mut PgConnection,
    transitions: &[Transition],
) -> Result<(), StoreError> {
    let rows: Vec<_> =
        transitions.iter().map(|transition| New { transition, action_tokens: None }).collect();
    insert(conn, &rows).await
}

/// A transition to be stored.
#[derive(Serialize)]
struct New<'a> {
    #[serde(flatten)]
    transition: &'a Transition,
    action_tokens: Option<&'a [i32]>,
}

/// Stores transitions that were imported, with the tokens of their actions.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_imported(
    conn: &mut PgConnection,
    transitions: &[(Transition, Vec<i32>)],
) -> Result<(), StoreError> {
    let rows: Vec<_> = transitions
        .iter()
        .map(|(transition, tokens)| New { transition, action_tokens: Some(tokens) })
        .collect();
    insert(conn, &rows).await
}

async fn insert(conn: &mut PgConnection, transitions: &[New<'_>]) -> Result<(), StoreError> {
    for rows in transitions.chunks(ROWS) {
        sqlx::query(
            "-- transitions::insert
             insert into transitions (id, job_id, iteration_id, episode_id, step, state_len, next_len,
                 action, env_action, observation, reward, reward_status, done, truncated,
                 generation_id, action_tokens)
             select id, job_id, iteration_id, episode_id, step, state_len, next_len, action, env_action,
                 observation, reward, reward_status, done, truncated, generation_id, action_tokens
             from json_populate_recordset(null::transitions, $1::json)",
        )
        .bind(json(rows)?)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Transitions with their conversations, in the order asked for.
///
/// # Errors
/// See [`StoreError`].
pub async fn load(
    conn: &mut PgConnection,
    ids: &[TransitionId],
) -> Result<Vec<Loaded>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(
        "-- transitions::load
         select t.*, e.messages, e.tools, e.seed, g.token_ids, g.finish_reason
         from transitions t
         join episodes e on e.id = t.episode_id
         left join generations g on g.id = t.generation_id
         where t.id = any($1)",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?;
    let mut by_id: HashMap<_, Loaded> = rows.into_iter().map(|r| (r.id, r.into())).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}

/// Which steps of successful episodes are imitated.
#[derive(Debug, Clone, Copy)]
pub struct Successes {
    /// The newest episodes, so many of them.
    pub newest: u32,
    /// Most episodes of one task from one iteration.
    pub per_task: u32,
    /// The same action in the same state counts once: its newest step.
    pub deduplicate: bool,
}

/// Steps of a job's successful episodes, oldest first, in an order without time in it.
///
/// # Errors
/// See [`StoreError`].
pub async fn of_successes(
    conn: &mut PgConnection,
    job: JobId,
    which: Successes,
) -> Result<Vec<TransitionId>, StoreError> {
    Ok(sqlx::query_scalar(
        "-- transitions::of_successes
         with solved as (
             select e.id, e.messages, i.index, e.ordinal,
                 row_number() over (partition by e.iteration_id, e.task order by e.ordinal) as of_task
             from episodes e join iterations i on i.id = e.iteration_id
             where e.job_id = $1 and e.purpose in ('collect', 'import') and e.success
         ), newest as (
             select * from solved where of_task <= $3 order by index desc, ordinal desc limit $2
         ), steps as (
             select t.id, n.index, n.ordinal, t.step,
                 row_number() over (
                     partition by t.action, (
                         select string_agg(m.message::text, ' ' order by m.place)
                         from jsonb_array_elements(n.messages) with ordinality as m (message, place)
                         where m.place <= t.state_len)
                     order by n.index desc, n.ordinal desc, t.step desc) as copy
             from newest n join transitions t on t.episode_id = n.id
         )
         select id from steps where copy = 1 or not $4 order by index, ordinal, step",
    )
    .bind(job)
    .bind(i64::from(which.newest))
    .bind(i64::from(which.per_task))
    .bind(which.deduplicate)
    .fetch_all(conn)
    .await?)
}
