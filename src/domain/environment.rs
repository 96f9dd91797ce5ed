//! What environments are and can do.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text_enum::text_enum;

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

impl Capabilities {
    /// Nothing beyond an episode.
    pub const NONE: Self = Self {
        replayable: false,
        concurrent: None,
        tools: false,
        admissible: false,
        achieved_goals: false,
        splits: false,
    };
}

text_enum!(
    /// Protocols of environments that others run.
    EnvironmentKind {
        /// OpenEnv, over WebSocket.
        Openenv = "openenv",
    }
);

/// A registered environment: a server that somebody else runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::FromRow, ToSchema)]
pub struct EnvironmentRecord {
    /// The name that specs use.
    pub name: String,
    /// Its protocol.
    pub kind: EnvironmentKind,
    /// `http://host:port`.
    pub url: String,
    /// The environment variable of this service that holds the environment's API key.
    pub api_key_env: Option<String>,
    /// Episodes that this service plays there at a time.
    pub sessions: i32,
    /// Seconds after which a step without an answer has failed.
    pub step_seconds: i32,
    /// The same task, seed and actions give the same episode.
    pub replayable: bool,
}

/// How an environment takes actions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum ActionForm {
    /// The whole reply, in a field of this name.
    Text {
        /// The field.
        field: String,
    },
    /// The JSON object in the reply.
    Json {
        /// JSON Schema of the object, as JSON text.
        json_schema: String,
    },
    /// Calls of the tools that the environment lists when an episode begins.
    Tools {
        /// The field of an action that holds text for the user; null where the agent can only call tools.
        text: Option<String>,
    },
}

impl fmt::Display for ActionForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { field } => write!(f, "the reply is the field {field:?} of an action"),
            Self::Json { .. } => f.write_str("an action is a JSON object"),
            Self::Tools { text: None } => f.write_str("an action calls tools"),
            Self::Tools { text: Some(field) } => {
                write!(f, "an action calls tools, or is a text in the field {field:?}")
            }
        }
    }
}

/// What a registered environment was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct FoundEnvironment {
    /// How it calls itself, with its version.
    pub title: String,
    /// How it takes actions.
    pub action: ActionForm,
    /// The field of an observation that is its text; null where an observation is told as JSON.
    pub observation: Option<String>,
    /// Its name in its own task API, where it lists tasks.
    pub tasks_of: Option<String>,
    /// The splits whose tasks it lists.
    pub splits: Vec<String>,
}

impl FoundEnvironment {
    /// Why a job that began on this cannot go on with what is there `now`. A new version or new splits are no reason.
    #[must_use]
    pub fn change(&self, now: &Self) -> Option<String> {
        if self.action != now.action {
            let same_form = self.action.to_string() == now.action.to_string();
            return Some(match same_form {
                true => "its actions have another schema".to_owned(),
                false => format!("at first {}, now {}", self.action, now.action),
            });
        }
        let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
        let changed = |what: &str, was: &Option<String>, is: &Option<String>| {
            (was != is).then(|| format!("{what} was {}, now {}", named(was), named(is)))
        };
        changed("the field of its observations", &self.observation, &now.observation)
            .or_else(|| changed("the name of its task list", &self.tasks_of, &now.tasks_of))
    }
}

impl EnvironmentRecord {
    /// What a job may ask of it.
    #[must_use]
    pub fn capabilities(&self, found: &FoundEnvironment) -> Capabilities {
        Capabilities {
            replayable: self.replayable,
            concurrent: u32::try_from(self.sessions).ok(),
            tools: matches!(found.action, ActionForm::Tools { .. }),
            // A server says these step by step, if at all.
            admissible: false,
            achieved_goals: false,
            splits: found.splits.len() > 1,
        }
    }
}
