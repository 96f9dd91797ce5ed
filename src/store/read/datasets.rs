//! Datasets and their episodes, as the pages list them. No query reads more episodes than it is told to.

use sqlx::{PgConnection, QueryBuilder};
use time::OffsetDateTime;

use crate::{
    domain::ids::EpisodeId,
    experience::episode::{EndReason, EpisodeState, TruncatedBy},
    store::StoreError,
};

/// Newest episodes of a dataset that its shares are measured on. A smaller dataset is measured as a whole.
pub const MEASURED: i64 = 1_000;

/// A dataset: its size, and measurements of its newest episodes.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DatasetRow {
    /// Its name.
    pub name: String,
    /// Number of its newest version; 0 while it has no episodes.
    pub version: i32,
    /// Episodes in it.
    pub episodes: i64,
    /// Episodes that were measured: the newest, [`MEASURED`] at most.
    pub measured: i64,
    /// Actions in the measured episodes.
    pub steps: i64,
    /// Measured episodes whose reward is pending.
    pub open: i64,
    /// Share of solved episodes among the measured ones with a known outcome; null if none has one.
    pub success: Option<f64>,
    /// When its first episode was stored.
    pub created_at: OffsetDateTime,
}

impl DatasetRow {
    /// Whether every episode was measured.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.measured >= self.episodes
    }

    /// Number of actions: exact if every episode was measured, otherwise estimated from those that were.
    #[must_use]
    pub fn transitions(&self) -> f64 {
        let each = self.steps as f64 / self.measured.max(1) as f64;
        if self.is_whole() { self.steps as f64 } else { each * self.episodes as f64 }
    }
}

/// Which datasets are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatasetFilter<'a> {
    /// One by its name.
    pub one: Option<&'a str>,
    /// Only those after this name.
    pub after: Option<&'a str>,
}

/// Datasets by name.
///
/// # Errors
/// See [`StoreError`].
pub async fn page(
    conn: &mut PgConnection,
    filter: DatasetFilter<'_>,
    limit: i64,
) -> Result<Vec<DatasetRow>, StoreError> {
    let mut query = QueryBuilder::new(
        "-- read::datasets::page
         select d.name, d.created_at, coalesce(v.version, 0) as version,
             coalesce(v.episodes, 0)::int8 as episodes, m.measured, m.steps, m.open, m.success
         from (select id, name, created_at from datasets where deleted_at is null",
    );
    if let Some(one) = filter.one {
        query.push(" and name = ").push_bind(one);
    }
    if let Some(after) = filter.after {
        query.push(" and name > ").push_bind(after);
    }
    query.push(" order by name limit ").push_bind(limit);
    query.push(
        ") d
         left join lateral (
             select version, episodes from dataset_versions where dataset_id = d.id order by version desc limit 1
         ) v on true
         cross join lateral (
             select count(*) as measured, coalesce(sum(e.turns), 0)::int8 as steps,
                 count(*) filter (where e.state = 'open') as open, avg(e.success::int)::float8 as success
             from (
                 select episode_id from dataset_episodes where dataset_id = d.id order by ordinal desc limit ",
    );
    query.push_bind(MEASURED);
    query.push(") x join episodes e on e.id = x.episode_id) m order by d.name");
    Ok(query.build_query_as().fetch_all(conn).await?)
}

/// Names of datasets, in order.
///
/// # Errors
/// See [`StoreError`].
pub async fn names(conn: &mut PgConnection, limit: i64) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "-- read::datasets::names
         select name from datasets where deleted_at is null order by name limit $1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// An episode in the list of its dataset.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DatasetEpisodeRow {
    /// Id.
    pub id: EpisodeId,
    /// Its number in the dataset, from 0 in the order of arrival.
    pub ordinal: i32,
    /// What the agent had to do; empty where the log does not say.
    pub task: String,
    /// The model that acted; null where it is not known.
    pub model: Option<String>,
    /// Actions in it.
    pub turns: i32,
    /// Whether a reward is pending.
    pub state: EpisodeState,
    /// Why it ended.
    pub end_reason: EndReason,
    /// What truncated it; null unless it was truncated.
    pub truncated_by: Option<TruncatedBy>,
    /// Sum of its rewards; null unless all are known.
    pub episode_return: Option<f64>,
    /// Whether it solved its task; null where that is not known.
    pub success: Option<bool>,
}

/// Episodes of a dataset, newest first: those with a smaller number than `before`.
///
/// # Errors
/// See [`StoreError`].
pub async fn episodes(
    conn: &mut PgConnection,
    name: &str,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<DatasetEpisodeRow>, StoreError> {
    Ok(sqlx::query_as(
        "-- read::datasets::episodes
         select e.id, x.ordinal, e.task, e.model, e.turns, e.state, e.end_reason, e.truncated_by,
             e.episode_return, e.success
         from datasets d
         cross join lateral (
             select ordinal, episode_id from dataset_episodes
             where dataset_id = d.id and ordinal < $2 order by ordinal desc limit $3
         ) x
         join episodes e on e.id = x.episode_id
         where d.name = $1 and d.deleted_at is null order by x.ordinal desc",
    )
    .bind(name)
    .bind(before.unwrap_or(i32::MAX))
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
