//! Environments that others serve over OpenEnv's WebSocket: one connection is one episode.

mod discovery;
mod protocol;
mod server;
mod session;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

pub use self::server::Server;
use self::session::Episode;
use super::{EnvError, Environment, Session, Split, Task, split_seed, unknown_task};
use crate::{
    domain::{
        environment::{ActionForm, Capabilities, FoundEnvironment},
        spec::{RemoteSpec, ToolFormat},
    },
    experience::{
        action::Codec,
        codec::{JsonObject, PlainText, ToolCalls},
    },
};

/// Most tasks that are named; a server may have any number of them.
const MOST_NAMED: u64 = 100_000;

/// A registered server, as a job plays on it.
#[derive(Clone)]
pub struct OpenEnv {
    server: Arc<Server>,
    found: FoundEnvironment,
    spec: RemoteSpec,
}

impl OpenEnv {
    /// A server, what it was found to be, and a job's settings.
    #[must_use]
    pub const fn new(server: Arc<Server>, found: FoundEnvironment, spec: RemoteSpec) -> Self {
        Self { server, found, spec }
    }

    fn split(&self, split: Split) -> &str {
        match split {
            Split::Train => &self.spec.train,
            Split::HeldOut => &self.spec.held_out,
        }
    }

    /// The server's name in its task API, if it lists tasks of a split.
    fn lists(&self, split: &str) -> Option<&str> {
        let listed = self.found.splits.iter().any(|known| known == split);
        self.found.tasks_of.as_deref().filter(|_| listed)
    }

    /// The split and the number of a task, by its name `split/number`; a task that is only drawn has its split's name.
    async fn resolve(&self, task: &Task, seed: u64) -> Result<(String, Option<u64>), EnvError> {
        let split = match task {
            Task::Drawn(split) => self.split(*split),
            Task::Named(name) => match name.rsplit_once('/') {
                Some((split, number)) => {
                    let number = number.parse();
                    let number = number.map_err(|_| unknown_task(&self.spec.name, name))?;
                    return Ok((split.to_owned(), Some(number)));
                }
                None => name,
            },
        };
        let Some(tasks_of) = self.lists(split) else {
            return match self.found.splits.is_empty() {
                true => Ok((split.to_owned(), None)),
                false => Err(unknown_task(&self.spec.name, split)),
            };
        };
        let count = self.server.tasks(tasks_of, split).await?;
        Ok((split.to_owned(), Some((seed >> 1) % count)))
    }
}

#[async_trait]
impl Environment for OpenEnv {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn capabilities(&self) -> Capabilities {
        self.server.record.capabilities(&self.found)
    }

    fn codec(&self, format: ToolFormat) -> Arc<dyn Codec> {
        codec(&self.found.action, format)
    }

    async fn tasks(&self, split: Split) -> Result<Vec<String>, EnvError> {
        let split = self.split(split);
        let Some(tasks_of) = self.lists(split) else { return Ok(Vec::new()) };
        let count = self.server.tasks(tasks_of, split).await?.min(MOST_NAMED);
        Ok((0..count).map(|number| format!("{split}/{number}")).collect())
    }

    async fn open(&self, task: &Task, seed: i64) -> Result<Box<dyn Session>, EnvError> {
        let drawn = match task {
            Task::Drawn(split) => split_seed(*split, seed),
            Task::Named(name) => {
                let split = name.rsplit_once('/').map_or(name.as_str(), |(split, _)| split);
                let held_out = split == self.spec.held_out;
                split_seed(if held_out { Split::HeldOut } else { Split::Train }, seed)
            }
        };
        let (split, number) = self.resolve(task, drawn).await?;
        let mut reset: Map<String, Value> = self.spec.reset.clone();
        // Python's and NumPy's generators take 32 bits. The lowest is the split's.
        reset.insert("seed".into(), json!(drawn & 0x7fff_ffff));
        let task = match number {
            Some(number) => {
                reset.insert("split".into(), json!(split));
                reset.insert("index".into(), json!(number));
                format!("{split}/{number}")
            }
            None => split,
        };
        Ok(Box::new(Episode::begin(self, task, &reset).await?))
    }
}

/// How replies are read as actions of a form.
#[must_use]
pub fn codec(form: &ActionForm, format: ToolFormat) -> Arc<dyn Codec> {
    match form {
        ActionForm::Text { .. } => Arc::new(PlainText),
        ActionForm::Json { .. } => Arc::new(JsonObject),
        ActionForm::Tools { .. } => Arc::new(ToolCalls(format)),
    }
}
