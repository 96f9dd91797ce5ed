//! Generated texts.

use serde::Serialize;
use sqlx::PgConnection;

use super::{
    StoreError,
    rows::{ROWS, json},
    spending::{self, Spending},
};
use crate::domain::{
    generation::{Generation, Sampling},
    ids::{EpisodeId, IterationId, JobId},
};

/// A text as a row.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    generation: &'a Generation,
    seed: Option<i64>,
    temperature: Option<f32>,
    max_tokens: u32,
}

impl<'a> Row<'a> {
    fn of(generation: &'a Generation) -> Self {
        let Sampling { temperature, max_tokens, seed } = generation.sampling;
        let temperature = (!generation.own_temperature).then_some(temperature);
        Self { generation, seed, temperature, max_tokens }
    }
}

/// Stores texts, and counts their tokens.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_many<'a>(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    generations: impl IntoIterator<Item = &'a Generation>,
) -> Result<(), StoreError> {
    let all: Vec<_> = generations.into_iter().map(Row::of).collect();
    for rows in all.chunks(ROWS) {
        sqlx::query(
            "-- generations::insert_many
             insert into generations (id, job_id, iteration_id, role, weights, checkpoint_id, model,
                 engine, prompt_hash, seed, temperature, max_tokens, reasoning_tokens, prompt_tokens, token_ids,
                 logprobs, text, finish_reason)
             select id, $2, $3, role, weights, checkpoint_id, model, engine, prompt_hash, seed,
                 temperature, max_tokens, reasoning_tokens, prompt_tokens, token_ids, logprobs, text, finish_reason
             from json_populate_recordset(null::generations, $1::json)",
        )
        .bind(json(rows)?)
        .bind(job)
        .bind(iteration)
        .execute(&mut *conn)
        .await?;
    }
    let written = all.iter().map(|row| row.generation.token_ids.len() as i64).sum();
    let read = all.iter().map(|row| i64::from(row.generation.prompt_tokens)).sum();
    let more = Spending { generated_tokens: written, prompt_tokens: read, ..Spending::default() };
    spending::add(conn, iteration, more).await
}

/// Stores a text of an agent's episode. It counts in no iteration.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert_of_episode(
    conn: &mut PgConnection,
    job: JobId,
    episode: EpisodeId,
    generation: &Generation,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- generations::insert_of_episode
         insert into generations (id, job_id, episode_id, role, weights, checkpoint_id, model, engine,
             prompt_hash, seed, temperature, max_tokens, prompt_tokens, token_ids, logprobs, text, finish_reason)
         select id, $2, $3, role, weights, checkpoint_id, model, engine, prompt_hash, seed,
             temperature, max_tokens, prompt_tokens, token_ids, logprobs, text, finish_reason
         from json_populate_recordset(null::generations, $1::json)",
    )
    .bind(json(&[Row::of(generation)])?)
    .bind(job)
    .bind(episode)
    .execute(conn)
    .await?;
    Ok(())
}
