//! Environments.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use crate::domain::environment::EnvironmentInfo;

/// All environments.
#[derive(Serialize, ToSchema)]
pub struct EnvironmentList {
    /// By name.
    data: Vec<EnvironmentInfo>,
}

/// Lists the environments that jobs can name, and what each can do.
#[utoipa::path(
    get, path = "/v1/environments", tag = "peers", operation_id = "list_environments",
    responses((status = 200, description = "All environments", body = EnvironmentList))
)]
pub(super) async fn list(State(state): State<AppState>) -> Json<EnvironmentList> {
    Json(EnvironmentList { data: state.environments.list() })
}
