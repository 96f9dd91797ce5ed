//! Environments, as they are sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::environment::{ActionForm, Capabilities, EnvironmentKind},
    store::environments::EnvironmentRow,
};

/// An environment that jobs can name, and what it can do.
#[derive(Serialize, ToSchema)]
pub struct EnvironmentView {
    /// Its name. A job names a built-in environment as `environment.kind`, a registered one as `environment.name` of the
    /// kind `remote`.
    pub name: String,
    /// It is built in; no other program is needed.
    pub built_in: bool,
    /// What it can do, at its default settings; null if it was never reached.
    pub capabilities: Option<Capabilities>,
    /// How it was registered; null for one that is built in.
    pub registration: Option<Registration>,
    /// How it takes actions; null for one that is built in, or that was never reached.
    pub action: Option<ActionForm>,
    /// The splits whose tasks it lists. Without any, tasks are drawn by seeds alone.
    pub splits: Vec<String>,
    /// How it calls itself, with its version.
    pub title: Option<String>,
    /// Why it did not answer when it was last asked; null if it did.
    pub trouble: Option<String>,
    /// When it was last asked.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub checked_at: Option<OffsetDateTime>,
}

/// The registration of an environment.
#[derive(Serialize, ToSchema)]
pub struct Registration {
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
    /// Whether the same task, seed and actions give the same episode.
    pub replayable: bool,
}

impl EnvironmentView {
    /// One that is built in.
    pub fn built_in((name, capabilities): (String, Capabilities)) -> Self {
        Self {
            name,
            built_in: true,
            capabilities: Some(capabilities),
            registration: None,
            action: None,
            splits: Vec::new(),
            title: None,
            trouble: None,
            checked_at: None,
        }
    }
}

impl From<EnvironmentRow> for EnvironmentView {
    fn from(EnvironmentRow { record, found, trouble, checked_at }: EnvironmentRow) -> Self {
        let found = found.map(|found| found.0);
        Self {
            built_in: false,
            capabilities: found.as_ref().map(|found| record.capabilities(found)),
            splits: found.as_ref().map(|found| found.splits.clone()).unwrap_or_default(),
            title: found.as_ref().map(|found| found.title.clone()),
            action: found.map(|found| found.action),
            name: record.name,
            registration: Some(Registration {
                kind: record.kind,
                url: record.url,
                api_key_env: record.api_key_env,
                sessions: record.sessions,
                step_seconds: record.step_seconds,
                replayable: record.replayable,
            }),
            trouble,
            checked_at,
        }
    }
}
