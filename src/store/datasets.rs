//! Logged episodes.

use std::collections::HashSet;

use serde::Serialize;
use sqlx::{PgConnection, types::Json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    StoreError,
    rows::{ROWS, json},
};
use crate::experience::{context::Tool, logged::LoggedEpisode, message::Message};

/// A dataset as it is shown.
#[derive(Debug, Clone, Serialize, sqlx::FromRow, ToSchema)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Episodes in it.
    pub episodes: i64,
    /// Actions in them.
    pub transitions: i64,
    /// Share of episodes that were solved, of those that say; null if none says.
    pub success: Option<f64>,
    /// When its first episode came.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

/// All datasets, by name.
///
/// # Errors
/// See [`StoreError`].
pub async fn list(conn: &mut PgConnection) -> Result<Vec<Dataset>, StoreError> {
    Ok(sqlx::query_as(
        "-- datasets::list
         select d.name, d.created_at, count(e.key) as episodes,
             coalesce(sum(cardinality(e.rewards)), 0)::int8 as transitions,
             avg(e.success::int)::float8 as success
         from datasets d left join dataset_episodes e on e.dataset = d.name
         group by d.name order by d.name",
    )
    .fetch_all(conn)
    .await?)
}

/// Episodes in a dataset; none if there is no such dataset.
///
/// # Errors
/// See [`StoreError`].
pub async fn size(conn: &mut PgConnection, name: &str) -> Result<Option<u32>, StoreError> {
    let size: Option<i64> = sqlx::query_scalar(
        "-- datasets::size
         select (select count(*) from dataset_episodes where dataset = d.name)
         from datasets d where d.name = $1",
    )
    .bind(name)
    .fetch_optional(conn)
    .await?;
    Ok(size.map(|size| u32::try_from(size).unwrap_or(u32::MAX)))
}

/// An episode at its place.
#[derive(Serialize)]
struct Numbered<'a> {
    ordinal: i32,
    #[serde(flatten)]
    episode: &'a LoggedEpisode,
}

/// Adds episodes to a dataset, which is made if it is not there; those whose key is there already stay
/// as they are. Returns how many were new.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(
    conn: &mut PgConnection,
    name: &str,
    episodes: &[LoggedEpisode],
) -> Result<usize, StoreError> {
    sqlx::query("insert into datasets (name) values ($1) on conflict do nothing")
        .bind(name)
        .execute(&mut *conn)
        .await?;
    // One import at a time numbers the episodes.
    let first: i32 = sqlx::query_scalar(
        "-- datasets::insert_many
         with held as (select name from datasets where name = $1 for update)
         select (select count(*) from dataset_episodes where dataset = held.name)::int from held",
    )
    .bind(name)
    .fetch_one(&mut *conn)
    .await?;
    let keys: Vec<&str> = episodes.iter().map(|e| e.key.as_str()).collect();
    let mut known: HashSet<String> = sqlx::query_scalar(
        "-- datasets::insert_many
         select key from dataset_episodes where dataset = $1 and key = any($2)",
    )
    .bind(name)
    .bind(&keys)
    .fetch_all(&mut *conn)
    .await?
    .into_iter()
    .collect();
    let new: Vec<_> = episodes.iter().filter(|e| known.insert(e.key.clone())).collect();
    let numbered: Vec<_> =
        (first..).zip(&new).map(|(ordinal, episode)| Numbered { ordinal, episode }).collect();
    for rows in numbered.chunks(ROWS) {
        sqlx::query(
            "-- datasets::insert_many
             insert into dataset_episodes (dataset, ordinal, key, task, messages, tools,
                 rewards, success, truncated)
             select $2, ordinal, key, task, messages, tools, rewards, success, truncated
             from json_populate_recordset(null::dataset_episodes, $1::json)",
        )
        .bind(json(rows)?)
        .bind(name)
        .execute(&mut *conn)
        .await?;
    }
    Ok(new.len())
}

#[derive(sqlx::FromRow)]
struct Row {
    key: String,
    task: String,
    messages: Json<Vec<Message>>,
    tools: Json<Vec<Tool>>,
    rewards: Vec<f64>,
    success: Option<bool>,
    truncated: bool,
}

/// `count` episodes of a dataset from the `first`-th on.
///
/// # Errors
/// See [`StoreError`].
pub async fn slice(
    conn: &mut PgConnection,
    name: &str,
    first: u32,
    count: u32,
) -> Result<Vec<LoggedEpisode>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(
        "-- datasets::slice
         select key, task, messages, tools, rewards, success, truncated from dataset_episodes
         where dataset = $1 and ordinal >= $2 and ordinal < $3 order by ordinal",
    )
    .bind(name)
    .bind(first.cast_signed())
    .bind((first + count).cast_signed())
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| LoggedEpisode {
            key: row.key,
            task: row.task,
            messages: row.messages.0,
            tools: row.tools.0,
            rewards: row.rewards,
            success: row.success,
            truncated: row.truncated,
        })
        .collect())
}
