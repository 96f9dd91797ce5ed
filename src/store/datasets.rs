//! Logged episodes.

use std::collections::HashSet;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{StoreError, episodes, transitions};
use crate::experience::imported::Imported;

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

/// Whether any step of these datasets has its reward.
///
/// # Errors
/// See [`StoreError`].
pub async fn any_rewarded(conn: &mut PgConnection, names: &[String]) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(
        "-- datasets::any_rewarded
         select exists (
             select from datasets d join dataset_episodes x on x.dataset_id = d.id
             join transitions t on t.episode_id = x.episode_id
             where d.name = any($1) and d.deleted_at is null and t.reward_status <> 'pending')",
    )
    .bind(names)
    .fetch_one(conn)
    .await?)
}

/// Adds episodes to a dataset, which is made if it is not there; those whose key is there already stay
/// as they are. Returns how many were new.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(
    conn: &mut PgConnection,
    name: &str,
    imported: Vec<Imported>,
) -> Result<usize, StoreError> {
    let (dataset, first) = begin(conn, name).await?;
    let keys: Vec<&str> = imported.iter().map(|e| e.key.as_str()).collect();
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
    for Imported { key, episode, steps: taken } in imported {
        if known.insert(key.clone()) {
            keys.push(key);
            rows.push(episode);
            steps.extend(taken);
        }
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

/// The dataset of a name, made if it is not there, and the ordinal of its next episode. It is locked until the
/// transaction ends: one import at a time numbers the episodes.
async fn begin(conn: &mut PgConnection, name: &str) -> Result<(Uuid, i32), StoreError> {
    loop {
        sqlx::query("insert into datasets (id, name) values ($1, $2) on conflict do nothing")
            .bind(Uuid::now_v7())
            .bind(name)
            .execute(&mut *conn)
            .await?;
        let held: Option<Uuid> = sqlx::query_scalar(
            "-- datasets::begin
             select id from datasets where name = $1 and deleted_at is null for update",
        )
        .bind(name)
        .fetch_optional(&mut *conn)
        .await?;
        // None, if somebody has just deleted it.
        let Some(dataset) = held else { continue };
        // A statement of its own sees what the import before has stored.
        let first = sqlx::query_scalar(
            "-- datasets::begin
             select count(*)::int from dataset_episodes where dataset_id = $1",
        )
        .bind(dataset)
        .fetch_one(conn)
        .await?;
        return Ok((dataset, first));
    }
}

/// Keeps datasets from being deleted until the transaction ends; returns whether all of them are there.
///
/// # Errors
/// See [`StoreError`].
pub async fn hold(conn: &mut PgConnection, names: &[String]) -> Result<bool, StoreError> {
    let held = sqlx::query(
        "-- datasets::hold
         select 1 from datasets where name = any($1) and deleted_at is null order by id for share",
    )
    .bind(names)
    .execute(conn)
    .await?;
    let distinct: HashSet<_> = names.iter().collect();
    Ok(held.rows_affected() == distinct.len() as u64)
}
