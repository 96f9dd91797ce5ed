//! Logged episodes.

use std::collections::HashSet;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{StoreError, episodes, transitions};
use crate::experience::logged::LoggedEpisode;

/// A dataset with its counts.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DatasetRow {
    /// Its name.
    pub name: String,
    /// Episodes in it.
    pub episodes: i64,
    /// Actions in them.
    pub transitions: i64,
    /// Episodes whose reward is awaited.
    pub open: i64,
    /// Share of episodes that were solved, of those that say; null if none says.
    pub success: Option<f64>,
    /// When its first episode came.
    pub created_at: OffsetDateTime,
}

/// All datasets, by name.
///
/// # Errors
/// See [`StoreError`].
pub async fn list(conn: &mut PgConnection) -> Result<Vec<DatasetRow>, StoreError> {
    Ok(sqlx::query_as(
        "-- datasets::list
         select d.name, d.created_at, count(e.id) as episodes, coalesce(sum(e.turns), 0)::int8 as transitions,
             count(*) filter (where e.state = 'open') as open, avg(e.success::int)::float8 as success
         from datasets d left join dataset_episodes x on x.dataset_id = d.id
         left join episodes e on e.id = x.episode_id
         where d.deleted_at is null
         group by d.id order by d.name",
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
         select (select count(*) from dataset_episodes where dataset_id = d.id)
         from datasets d where d.name = $1 and d.deleted_at is null",
    )
    .bind(name)
    .fetch_optional(conn)
    .await?;
    Ok(size.map(|size| u32::try_from(size).unwrap_or(u32::MAX)))
}

/// Adds episodes to a dataset, which is made if it is not there; those whose key is there already stay
/// as they are. Returns how many were new.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(
    conn: &mut PgConnection,
    name: &str,
    logged: Vec<LoggedEpisode>,
    now: OffsetDateTime,
) -> Result<usize, StoreError> {
    sqlx::query("insert into datasets (id, name) values ($1, $2) on conflict do nothing")
        .bind(Uuid::now_v7())
        .bind(name)
        .execute(&mut *conn)
        .await?;
    // One import at a time numbers the episodes.
    let (dataset, first): (Uuid, i32) = sqlx::query_as(
        "-- datasets::insert_many
         with held as (select id from datasets where name = $1 and deleted_at is null for update)
         select id, (select count(*) from dataset_episodes where dataset_id = held.id)::int from held",
    )
    .bind(name)
    .fetch_one(&mut *conn)
    .await?;
    let keys: Vec<&str> = logged.iter().map(|e| e.key.as_str()).collect();
    let known: Vec<String> = sqlx::query_scalar(
        "-- datasets::insert_many
         select key from dataset_episodes where dataset_id = $1 and key = any($2)",
    )
    .bind(dataset)
    .bind(&keys)
    .fetch_all(&mut *conn)
    .await?;
    let mut known: HashSet<String> = known.into_iter().collect();
    let (mut keys, mut rows, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for logged in logged.into_iter().filter(|e| known.insert(e.key.clone())) {
        keys.push(logged.key.clone());
        let (episode, taken) = logged.into_rows(now).map_err(|e| sqlx::Error::Encode(e.into()))?;
        rows.push(episode);
        steps.extend(taken);
    }
    episodes::insert_many(conn, &rows).await?;
    transitions::insert_many(conn, &steps).await?;
    sqlx::query(
        "-- datasets::insert_many
         insert into dataset_episodes (dataset_id, ordinal, key, episode_id)
         select $1, $2 + place::int - 1, key, id
         from unnest($3::text[], $4::uuid[]) with ordinality as new (key, id, place)",
    )
    .bind(dataset)
    .bind(first)
    .bind(&keys)
    .bind(rows.iter().map(|episode| episode.id).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(rows.len())
}
