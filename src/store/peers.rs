//! Registered engines and trainers.

use serde::Serialize;
use sqlx::PgConnection;

use super::StoreError;

/// A registered engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, sqlx::FromRow, utoipa::ToSchema)]
pub struct EngineRecord {
    /// The name that specs use.
    pub name: String,
    /// Its dialect: `vllm`.
    pub kind: String,
    /// `http://host:port` of every replica.
    pub urls: Vec<String>,
    /// The base model's name on the wire.
    pub base_model: String,
    /// Directory with the base model's tokenizer and chat template, as this service sees it.
    pub model_dir: String,
    /// Whether requests carry a seed.
    pub seeds: bool,
}

/// A registered trainer.
#[derive(Debug, Clone, PartialEq, Serialize, sqlx::FromRow, utoipa::ToSchema)]
pub struct TrainerRecord {
    /// The name that specs use.
    pub name: String,
    /// Its protocol: `tinker` or `skyrl_jax`.
    pub kind: String,
    /// `http://host:port`.
    pub url: String,
    /// The base model's name on the wire.
    pub base_model: String,
}

/// Registers an engine, or changes its registration.
///
/// # Errors
/// See [`StoreError`].
pub async fn put_engine(conn: &mut PgConnection, engine: &EngineRecord) -> Result<(), StoreError> {
    sqlx::query(
        "-- peers::put_engine
         insert into engines (name, kind, urls, base_model, model_dir, seeds)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (name) do update set kind = excluded.kind, urls = excluded.urls,
             base_model = excluded.base_model, model_dir = excluded.model_dir,
             seeds = excluded.seeds, updated_at = now()",
    )
    .bind(&engine.name)
    .bind(&engine.kind)
    .bind(&engine.urls)
    .bind(&engine.base_model)
    .bind(&engine.model_dir)
    .bind(engine.seeds)
    .execute(conn)
    .await?;
    Ok(())
}

/// Registers a trainer, or changes its registration.
///
/// # Errors
/// See [`StoreError`].
pub async fn put_trainer(
    conn: &mut PgConnection,
    trainer: &TrainerRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- peers::put_trainer
         insert into trainers (name, kind, url, base_model) values ($1, $2, $3, $4)
         on conflict (name) do update set kind = excluded.kind, url = excluded.url,
             base_model = excluded.base_model, updated_at = now()",
    )
    .bind(&trainer.name)
    .bind(&trainer.kind)
    .bind(&trainer.url)
    .bind(&trainer.base_model)
    .execute(conn)
    .await?;
    Ok(())
}

/// All engines.
///
/// # Errors
/// See [`StoreError`].
pub async fn engines(conn: &mut PgConnection) -> Result<Vec<EngineRecord>, StoreError> {
    Ok(sqlx::query_as(
        "-- peers::engines
         select name, kind, urls, base_model, model_dir, seeds from engines order by name",
    )
    .fetch_all(conn)
    .await?)
}

/// All trainers.
///
/// # Errors
/// See [`StoreError`].
pub async fn trainers(conn: &mut PgConnection) -> Result<Vec<TrainerRecord>, StoreError> {
    Ok(sqlx::query_as(
        "-- peers::trainers
         select name, kind, url, base_model from trainers order by name",
    )
    .fetch_all(conn)
    .await?)
}
