//! What an iteration replays, drawn once.

use sqlx::{PgConnection, QueryBuilder};

use super::{StoreError, generations::ROWS};
use crate::domain::ids::{IterationId, TransitionId};

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
    let numbered: Vec<_> = (0_i32..).zip(draws).collect();
    for rows in numbered.chunks(ROWS) {
        QueryBuilder::new(
            "-- replay_draws::insert_many
             insert into replay_draws (iteration_id, position, transition_id, importance) ",
        )
        .push_values(rows, |mut row, (position, draw)| {
            row.push_bind(iteration)
                .push_bind(*position)
                .push_bind(draw.transition_id)
                .push_bind(draw.importance);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
