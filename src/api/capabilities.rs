//! What registered peers can do: as they were found, or found out now.

use super::{AppState, problem::Problem};
use crate::{
    domain::peer::{EngineCapabilities, TrainerCapabilities},
    store::peers::{self, EngineView, TrainerView},
};

/// What is known; inside, why it is not.
type Known<T> = Result<Result<T, String>, Problem>;

/// What an engine can do. It is asked if it was never reached, or not when it was last asked.
pub(super) async fn engine(state: &AppState, view: &EngineView) -> Known<EngineCapabilities> {
    match (&view.capabilities, &view.trouble) {
        (Some(known), None) => Ok(Ok(known.0.clone())),
        _ => {
            let found = state.discover.engine(&view.record).await;
            let mut conn = state.store.acquire().await?;
            peers::note_engine(&mut conn, &view.record.name, &found).await?;
            Ok(found)
        }
    }
}

/// What a trainer can do. It is asked if it was never reached, or not when it was last asked.
pub(super) async fn trainer(state: &AppState, view: &TrainerView) -> Known<TrainerCapabilities> {
    match (&view.capabilities, &view.trouble) {
        (Some(known), None) => Ok(Ok(known.0.clone())),
        _ => {
            let found = state.discover.trainer(&view.record).await;
            let mut conn = state.store.acquire().await?;
            peers::note_trainer(&mut conn, &view.record.name, &found).await?;
            Ok(found)
        }
    }
}
