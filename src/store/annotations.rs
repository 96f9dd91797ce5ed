//! Predictions, targets, critiques and refinements. Their texts are in `generations`.

use sqlx::{PgConnection, QueryBuilder};

use super::{StoreError, generations::ROWS};
use crate::domain::{
    annotation::{Critique, Prediction, Refinement, Target},
    ids::{IterationId, JobId},
};

/// Stores predictions.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_predictions(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    predictions: &[Prediction],
) -> Result<(), StoreError> {
    for rows in predictions.chunks(ROWS) {
        QueryBuilder::new(
            "-- annotations::insert_predictions
             insert into predictions (id, job_id, iteration_id, transition_id, purpose, round, ordinal,
                 action, generation_id) ",
        )
        .push_values(rows, |mut row, p| {
            row.push_bind(p.id)
                .push_bind(job)
                .push_bind(iteration)
                .push_bind(p.transition_id)
                .push_bind(p.purpose)
                .push_bind(p.round)
                .push_bind(p.ordinal)
                .push_bind(&p.action)
                .push_bind(p.generation_id);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Stores targets.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_targets(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    targets: &[Target],
) -> Result<(), StoreError> {
    for rows in targets.chunks(ROWS) {
        QueryBuilder::new(
            "-- annotations::insert_targets
             insert into targets (id, job_id, iteration_id, transition_id, next_action_generation_id,
                 next_prediction_id, generation_id, status) ",
        )
        .push_values(rows, |mut row, t| {
            row.push_bind(t.id)
                .push_bind(job)
                .push_bind(iteration)
                .push_bind(t.transition_id)
                .push_bind(t.next_action_generation_id)
                .push_bind(t.next_prediction_id)
                .push_bind(t.generation_id)
                .push_bind(t.status);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Stores critiques.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_critiques(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    critiques: &[Critique],
) -> Result<(), StoreError> {
    for rows in critiques.chunks(ROWS) {
        QueryBuilder::new(
            "-- annotations::insert_critiques
             insert into critiques (id, job_id, iteration_id, transition_id, round, action,
                 prediction_ids, generation_id, verdict) ",
        )
        .push_values(rows, |mut row, c| {
            row.push_bind(c.id)
                .push_bind(job)
                .push_bind(iteration)
                .push_bind(c.transition_id)
                .push_bind(c.round)
                .push_bind(&c.action)
                .push_bind(&c.prediction_ids)
                .push_bind(c.generation_id)
                .push_bind(c.verdict);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Stores refinements.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_refinements(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    refinements: &[Refinement],
) -> Result<(), StoreError> {
    for rows in refinements.chunks(ROWS) {
        QueryBuilder::new(
            "-- annotations::insert_refinements
             insert into refinements (id, job_id, iteration_id, transition_id, round, critique_id,
                 generation_id, valid, changed) ",
        )
        .push_values(rows, |mut row, r| {
            row.push_bind(r.id)
                .push_bind(job)
                .push_bind(iteration)
                .push_bind(r.transition_id)
                .push_bind(r.round)
                .push_bind(r.critique_id)
                .push_bind(r.generation_id)
                .push_bind(r.valid)
                .push_bind(r.changed);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
