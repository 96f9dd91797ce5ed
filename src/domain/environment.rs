//! What environments can do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an environment can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Capabilities {
    /// The same task, seed and actions give the same episode: a state can be gone back to.
    pub replayable: bool,
    /// Sessions at a time; null where the environment sets no limit.
    pub concurrent: Option<u32>,
    /// It offers tools.
    pub tools: bool,
    /// It says which actions are possible.
    pub admissible: bool,
    /// It says which goals a step achieved.
    pub achieved_goals: bool,
    /// Held-out tasks are others than those of training.
    pub splits: bool,
}

/// An environment that jobs can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EnvironmentInfo {
    /// What `environment.kind` says.
    pub name: String,
    /// It is built in; no other program is needed.
    pub built_in: bool,
    /// What it can do, at its default settings.
    pub capabilities: Capabilities,
}
