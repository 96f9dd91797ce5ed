//! Transitions, found by what was said about them.

use serde::Serialize;
use sqlx::{PgConnection, QueryBuilder, types::Json};
use utoipa::ToSchema;

use crate::{
    domain::{
        annotation::{TargetStatus, Verdict},
        ids::{EpisodeId, GenerationId, JobId, TransitionId},
    },
    experience::{chat::ChatMessage, context::Tool, episode::RewardStatus, message::Message},
    store::StoreError,
};

/// A transition as it is shown, with its newest annotation.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct TransitionView {
    /// Its id.
    pub id: TransitionId,
    /// Its job.
    pub job_id: JobId,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Number of its iteration.
    pub iteration: i32,
    /// Its place in the episode.
    pub step: i32,
    /// The conversation before the action.
    #[schema(value_type = Vec<ChatMessage>)]
    pub state: Json<Vec<Message>>,
    /// Tools that the agent could call, for exports; the episode shows them.
    #[serde(skip)]
    pub tools: Json<Vec<Tool>>,
    /// The policy's reply.
    pub action: String,
    /// The part of it that reached the environment; null when it could not be read.
    pub env_action: Option<String>,
    /// What the environment answered.
    pub observation: String,
    /// Reward; null unless observed.
    pub reward: Option<f64>,
    /// Why it is there or not.
    pub reward_status: RewardStatus,
    /// The task ended here.
    pub done: bool,
    /// The episode was cut here.
    pub truncated: bool,
    /// The generation that is the action; null for imported steps.
    pub generation_id: Option<GenerationId>,
    /// Critic loss per token when last learnt from, nats; its priority in replay.
    pub loss: Option<f32>,
    /// How often it was learnt from.
    pub uses: Option<i32>,
    /// Whether its episode was solved; null unless the environment said so.
    pub success: Option<bool>,
    /// The iteration whose annotation the next fields show: the newest that judged the action. They belong together: a
    /// refinement is what the rounds after this critique came to.
    pub annotated_in: Option<i32>,
    /// Its verdict on the action.
    pub verdict: Option<Verdict>,
    /// Its critique of the action.
    pub critique: Option<String>,
    /// What it refined the action to, after the last round; null where it approved of the action.
    pub refinement: Option<String>,
    /// Whether the environment can read the refinement.
    pub valid: Option<bool>,
    /// Whether the refinement is another text than the action.
    pub changed: Option<bool>,
}

/// Which transitions are found.
#[derive(Debug, Clone, Default)]
pub struct Search<'a> {
    /// Of one job.
    pub job: Option<JobId>,
    /// With these words in action, newest critique or newest refinement, as people type them: quotes hold
    /// a phrase together, `or` and `-` mean what they say.
    pub words: Option<&'a str>,
    /// With this newest verdict.
    pub verdict: Option<Verdict>,
    /// Of episodes that were solved, or not.
    pub success: Option<bool>,
    /// Whose newest refinement changed the action, or did not.
    pub changed: Option<bool>,
    /// With a newest Bellman target in this state.
    pub target_status: Option<TargetStatus>,
    /// Of this iteration and later ones.
    pub from_iteration: Option<i32>,
    /// Of this iteration and earlier ones.
    pub to_iteration: Option<i32>,
    /// Only those before this one.
    pub after: Option<TransitionId>,
}

/// Rows that are looked through before it is asked what else there is.
const NEWEST: i64 = 5_000;

/// Finds transitions, newest first.
///
/// # Errors
/// See [`StoreError`].
pub async fn search(
    conn: &mut PgConnection,
    search: &Search<'_>,
    limit: i64,
) -> Result<Vec<TransitionId>, StoreError> {
    // What is common is found soonest among the newest rows, what is rare through the index of what makes it so.
    // Which it is the planner cannot know of several conditions together, and guessing wrong it reads everything.
    let newest = find(conn, search, limit, Reach::Newest).await?;
    if newest.len() as i64 == limit {
        return Ok(newest);
    }
    let pairs = match search.words {
        Some(words) => neighbours(&parsed(conn, words).await?),
        None => Vec::new(),
    };
    find(conn, search, limit, Reach::All { pairs: &pairs }).await
}

/// A query as the database reads it.
async fn parsed(conn: &mut PgConnection, words: &str) -> Result<String, StoreError> {
    Ok(sqlx::query_scalar(
        "-- read::transitions::parsed
         select websearch_to_tsquery('simple', $1)::text",
    )
    .bind(words)
    .fetch_one(conn)
    .await?)
}

/// Words that follow one another in everything that a query finds, as the index of pairs holds them.
fn neighbours(query: &str) -> Vec<String> {
    // Of what may or may not be there, nothing follows.
    if query.contains(['|', '!', '(']) {
        return Vec::new();
    }
    let plain = |word: &str| {
        let word = word.strip_prefix('\'')?.strip_suffix('\'')?;
        (!word.contains(['\'', '\\', ' '])).then(|| word.to_owned())
    };
    let mut pairs = Vec::new();
    for phrase in query.split(" & ") {
        let words: Vec<_> = phrase.split(" <-> ").map(plain).collect();
        for pair in words.windows(2) {
            if let [Some(one), Some(next)] = pair {
                pairs.push(format!("{one} {next}"));
            }
        }
    }
    pairs
}

/// What is looked through.
#[derive(Clone, Copy)]
enum Reach<'a> {
    /// The newest rows.
    Newest,
    /// All rows, by whatever index leaves the fewest; these pairs of words are in all that is found.
    All { pairs: &'a [String] },
}

/// Finds transitions as far as it reaches.
async fn find(
    conn: &mut PgConnection,
    search: &Search<'_>,
    limit: i64,
    reach: Reach<'_>,
) -> Result<Vec<TransitionId>, StoreError> {
    let mut query = QueryBuilder::new(
        "-- read::transitions::search
         select transition_id from (select * from transition_search where true",
    );
    // Only what is asked for is written down: a plan for everything at once would use no index.
    if let Some(job) = search.job {
        query.push(" and job_id = ").push_bind(job);
    }
    if let Some(after) = search.after {
        query.push(" and transition_id < ").push_bind(after);
    }
    match reach {
        Reach::Newest => {
            query
                .push(" order by transition_id desc limit ")
                .push_bind(NEWEST)
                .push(") newest where true");
        }
        Reach::All { pairs: [] } => {}
        Reach::All { pairs } => {
            query.push(" and word_pairs(words) @> ").push_bind(pairs);
        }
    }
    if let Some(words) = search.words {
        query.push(" and words @@ websearch_to_tsquery('simple', ").push_bind(words).push(")");
    }
    if let Some(verdict) = search.verdict {
        query.push(" and verdict = ").push_bind(verdict);
    }
    if let Some(success) = search.success {
        query.push(" and success = ").push_bind(success);
    }
    if let Some(changed) = search.changed {
        query.push(" and changed = ").push_bind(changed);
    }
    if let Some(status) = search.target_status {
        query.push(" and target_status = ").push_bind(status);
    }
    if let Some(from) = search.from_iteration {
        query.push(" and iteration >= ").push_bind(from);
    }
    if let Some(to) = search.to_iteration {
        query.push(" and iteration <= ").push_bind(to);
    }
    if matches!(reach, Reach::All { .. }) {
        // Planned for all that there is, not for the first few in order.
        query.push(" offset 0) every");
    }
    query.push(" order by transition_id desc limit ").push_bind(limit);
    Ok(query.build_query_scalar().fetch_all(conn).await?)
}

/// A job's transitions, oldest first, those after `after`.
///
/// # Errors
/// See [`StoreError`].
pub async fn oldest(
    conn: &mut PgConnection,
    job: JobId,
    after: Option<TransitionId>,
    limit: i64,
) -> Result<Vec<TransitionId>, StoreError> {
    Ok(sqlx::query_scalar(
        "-- read::transitions::oldest
         select id from transitions where job_id = $1 and ($2::uuid is null or id > $2)
         order by id limit $3",
    )
    .bind(job)
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Whether a job's conversations hold more than texts: tools, calls or reasoning.
///
/// # Errors
/// See [`StoreError`].
pub async fn hold_more_than_texts(conn: &mut PgConnection, job: JobId) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(
        "-- read::transitions::hold_more_than_texts
         select exists (select from episodes where job_id = $1 and (tools <> '[]' or messages @?
             '$[*] ? (exists(@.tool_calls) || exists(@.tool_call_id) || exists(@.reasoning_content)
                 || exists(@.is_error) || exists(@.content[*].type))'))",
    )
    .bind(job)
    .fetch_one(conn)
    .await?)
}

/// Transitions by their ids, newest first.
///
/// # Errors
/// See [`StoreError`].
pub async fn views(
    conn: &mut PgConnection,
    ids: &[TransitionId],
) -> Result<Vec<TransitionView>, StoreError> {
    Ok(sqlx::query_as(
        "-- read::transitions::views
         select t.*, e.tools, i.index as iteration, e.success, p.loss, p.uses, c.index as annotated_in,
             c.verdict, c.text as critique,
             r.text as refinement, r.valid, btrim(r.text) <> btrim(t.action) as changed,
             (select coalesce(jsonb_agg(m order by n), '[]') from jsonb_array_elements(e.messages)
              with ordinality as x(m, n) where n <= t.state_len) as state
         from unnest($1::uuid[]) as wanted(id)
         join transitions t on t.id = wanted.id
         join iterations i on i.id = t.iteration_id
         join episodes e on e.id = t.episode_id
         left join replay p on p.transition_id = t.id
         left join lateral (
             select c.verdict, c.iteration_id, a.index, g.text
             from critiques c join generations g on g.id = c.generation_id
             join iterations a on a.id = c.iteration_id
             where c.transition_id = t.id and c.round = 0 order by c.id desc limit 1
         ) c on true
         left join lateral (
             select r.valid, g.text from refinements r join generations g on g.id = r.generation_id
             where r.transition_id = t.id and r.iteration_id = c.iteration_id order by r.round desc limit 1
         ) r on true
         order by t.id desc",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?)
}

/// One transition.
///
/// # Errors
/// See [`StoreError`].
pub async fn one(
    conn: &mut PgConnection,
    id: TransitionId,
) -> Result<Option<TransitionView>, StoreError> {
    Ok(views(conn, &[id]).await?.pop())
}

/// The steps of an episode, in order.
///
/// # Errors
/// See [`StoreError`].
pub async fn of_episode(
    conn: &mut PgConnection,
    episode: EpisodeId,
) -> Result<Vec<TransitionView>, StoreError> {
    let ids: Vec<TransitionId> = sqlx::query_scalar(
        "-- read::transitions::of_episode
         select id from transitions where episode_id = $1",
    )
    .bind(episode)
    .fetch_all(&mut *conn)
    .await?;
    let mut steps = views(conn, &ids).await?;
    steps.sort_unstable_by_key(|view| view.step);
    Ok(steps)
}
