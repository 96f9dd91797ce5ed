//! What an iteration replays, drawn once.

use sqlx::PgConnection;

use super::StoreError;
use crate::domain::ids::{IterationId, JobId, TransitionId};

/// One drawn transition.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct Draw {
    /// The transition.
    pub transition_id: TransitionId,
    /// Its importance weight.
    pub importance: f32,
}

/// An iteration's draws in their order, behind a lock on the iteration: the first to ask finds none,
/// and is the only one to.
///
/// # Errors
/// See [`StoreError`].
pub async fn lock(
    conn: &mut PgConnection,
    iteration: IterationId,
) -> Result<Vec<Draw>, StoreError> {
    sqlx::query("select 1 from iterations where id = $1 for update")
        .bind(iteration)
        .execute(&mut *conn)
        .await?;
    Ok(sqlx::query_as(
        "-- replay_draws::lock
         select transition_id, importance from replay_draws where iteration_id = $1 order by position",
    )
    .bind(iteration)
    .fetch_all(conn)
    .await?)
}

/// Stores draws.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many(
    conn: &mut PgConnection,
    iteration: IterationId,
    draws: &[Draw],
) -> Result<(), StoreError> {
    sqlx::query(
        "-- replay_draws::insert_many
         insert into replay_draws (iteration_id, position, transition_id, importance)
         select $1, position - 1, t, importance
         from unnest($2::uuid[], $3::real[]) with ordinality as d (t, importance, position)",
    )
    .bind(iteration)
    .bind(draws.iter().map(|d| d.transition_id).collect::<Vec<_>>())
    .bind(draws.iter().map(|d| d.importance).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// The place of a transition in what an iteration of a job replayed, and in how many slices it was annotated.
///
/// # Errors
/// See [`StoreError`].
pub async fn place(
    conn: &mut PgConnection,
    job: JobId,
    iteration: i32,
    transition: TransitionId,
) -> Result<Option<(i32, i64)>, StoreError> {
    Ok(sqlx::query_as(
        "-- replay_draws::place
         select d.position, (select count(*) from work_items
                             where iteration_id = i.id and phase = 'annotate') as slices
         from iterations i join replay_draws d on d.iteration_id = i.id
         where i.job_id = $1 and i.index = $2 and d.transition_id = $3",
    )
    .bind(job)
    .bind(iteration)
    .bind(transition)
    .fetch_optional(conn)
    .await?)
}
