//! What the registered engines, trainers and environments can do: as they were found, or found out now.

use super::{AppState, problem::Problem};
use crate::{
    domain::{
        environment::FoundEnvironment,
        peer::{EngineCapabilities, TrainerCapabilities},
    },
    store::{
        environments::{self, EnvironmentRow},
        peers::{self, EngineRow, TrainerRow},
    },
};

/// What is known; inside, why it is not.
type Known<T> = Result<Result<T, String>, Problem>;

/// What an engine can do. It is asked if it was never reached, or not when it was last asked.
pub(super) async fn engine(state: &AppState, row: &EngineRow) -> Known<EngineCapabilities> {
    match (&row.capabilities, &row.trouble) {
        (Some(known), None) => Ok(Ok(known.0.clone())),
        _ => {
            let found = state.discover.engine(&row.record).await;
            let mut conn = state.store.acquire().await?;
            peers::note_engine(&mut conn, &row.record.name, &found).await?;
            Ok(found)
        }
    }
}

/// What a trainer can do. It is asked if it was never reached, or not when it was last asked.
pub(super) async fn trainer(state: &AppState, row: &TrainerRow) -> Known<TrainerCapabilities> {
    match (&row.capabilities, &row.trouble) {
        (Some(known), None) => Ok(Ok(known.0.clone())),
        _ => {
            let found = state.discover.trainer(&row.record).await;
            let mut conn = state.store.acquire().await?;
            peers::note_trainer(&mut conn, &row.record.name, &found).await?;
            Ok(found)
        }
    }
}

/// What an environment is. It is asked if it was never reached, or not when it was last asked.
pub(super) async fn environment(state: &AppState, row: &EnvironmentRow) -> Known<FoundEnvironment> {
    match (&row.found, &row.trouble) {
        (Some(known), None) => Ok(Ok(known.0.clone())),
        _ => {
            let found = state.discover.environment(&row.record).await;
            let mut conn = state.store.acquire().await?;
            environments::note(&mut conn, &row.record, &found).await?;
            Ok(found)
        }
    }
}
