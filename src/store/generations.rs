//! Generated texts.

use sqlx::{PgConnection, QueryBuilder};

use super::StoreError;
use crate::domain::{
    generation::Generation,
    ids::{IterationId, JobId},
};

/// Rows per statement, well under Postgres' limit of parameters.
pub(super) const ROWS: usize = 1000;

/// Stores texts.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many<'a>(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    generations: impl IntoIterator<Item = &'a Generation>,
) -> Result<(), StoreError> {
    let all: Vec<_> = generations.into_iter().collect();
    for rows in all.chunks(ROWS) {
        QueryBuilder::new(
            "-- generations::insert_many
             insert into generations (id, job_id, iteration_id, role, weights, checkpoint_id, model,
                 engine, prompt_hash, seed, temperature, max_tokens, prompt_tokens, token_ids, logprobs,
                 text, finish_reason) ",
        )
        .push_values(rows, |mut row, g| {
            row.push_bind(g.id)
                .push_bind(job)
                .push_bind(iteration)
                .push_bind(g.role)
                .push_bind(g.weights)
                .push_bind(g.checkpoint_id)
                .push_bind(&g.model)
                .push_bind(&g.engine)
                .push_bind(&g.prompt_hash)
                .push_bind(g.sampling.seed)
                .push_bind(g.sampling.temperature)
                .push_bind(g.sampling.max_tokens.cast_signed())
                .push_bind(g.prompt_tokens)
                .push_bind(&g.token_ids)
                .push_bind(&g.logprobs)
                .push_bind(&g.text)
                .push_bind(g.finish_reason);
        })
        .build()
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
