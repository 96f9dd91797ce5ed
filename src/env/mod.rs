//! Environments: the trait and each kind that is built in.
//!
//! An environment opens sessions; a session is one episode and is used once. What an environment cannot know is not a
//! number: a reward exists only where the environment gave it.

mod help_desk;
mod twenty_questions;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    domain::{
        environment::{Capabilities, EnvironmentInfo},
        fault::Fault,
        spec::{EnvironmentSpec, ObjectTable, ToolFormat},
    },
    experience::{
        action::{Codec, Read},
        context::Context,
        message::Message,
    },
};

pub use help_desk::{Desk, Field, HelpDesk, Kind};
pub use twenty_questions::{
    TwentyQuestions,
    small::{Game as SmallGame, table as small_table},
};

/// Which tasks may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    Train,
    /// To measure with.
    HeldOut,
}

/// The task of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// One that the environment draws by the episode's seed.
    Drawn(Split),
    /// One by the environment's own name for it.
    Named(String),
}

/// The reward of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reward {
    /// The environment gave it.
    Known(f64),
    /// It will come later.
    Pending,
}

impl Reward {
    /// Its number, where it is known.
    #[must_use]
    pub const fn known(self) -> Option<f64> {
        match self {
            Self::Known(reward) => Some(reward),
            Self::Pending => None,
        }
    }
}

/// How an episode stands after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It goes on.
    Continues,
    /// The task ended it.
    Terminated {
        /// The task was solved; none where the environment does not say.
        success: Option<bool>,
    },
    /// Something that is not part of the task cut it.
    Truncated {
        /// What, in words.
        why: String,
    },
}

/// What the environment answered to an action.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the agent is told: one message, or several.
    pub messages: Vec<Message>,
    /// Reward of this step.
    pub reward: Reward,
    /// How the episode stands.
    pub end: End,
    /// Actions that are possible now, where the environment says so.
    pub admissible: Vec<String>,
    /// Goals that this step achieved, where the environment says so.
    pub achieved_goals: Vec<String>,
}

impl Step {
    /// An answer of one message from the user, of an environment that says no more.
    #[must_use]
    pub fn of(text: impl Into<String>, reward: f64, end: End) -> Self {
        Self {
            messages: vec![Message::user(text)],
            reward: Reward::Known(reward),
            end,
            admissible: Vec::new(),
            achieved_goals: Vec::new(),
        }
    }
}

/// Why an environment failed.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// It may go better in a new session, in which the actions so far are taken again.
    #[error("environment {environment}: {reason}")]
    Transient {
        /// Its name.
        environment: String,
        /// Why.
        reason: String,
    },
    /// It has no room for another session now.
    #[error("environment {environment} has no free session: {reason}")]
    Full {
        /// Its name.
        environment: String,
        /// What it said.
        reason: String,
    },
    /// It will fail again.
    #[error("environment {environment}: {reason}")]
    Permanent {
        /// Its name.
        environment: String,
        /// Why.
        reason: String,
    },
    /// A step was taken after the end.
    #[error("the episode has ended; start a new session")]
    Ended,
    /// The same replies from the same seed led elsewhere.
    #[error("the environment does not repeat an earlier episode from its seed and replies")]
    Diverged,
}

impl EnvError {
    /// What it asks of the queue, where the episode was not played because of it; none where it is an episode that
    /// failed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Transient { .. } => Some(Fault::retry(self)),
            Self::Full { environment, .. } => Some(Fault::away("environment", environment, self)),
            Self::Permanent { .. } | Self::Ended | Self::Diverged => None,
        }
    }
}

/// A kind of task.
#[async_trait]
pub trait Environment: Send + Sync {
    /// Its name in specs and rows.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// How replies are read as actions, for a model that writes tool calls in a format.
    fn codec(&self, format: ToolFormat) -> Arc<dyn Codec>;

    /// Names of the tasks of a split; empty where tasks are only drawn by seeds.
    ///
    /// # Errors
    /// An environment that cannot be asked.
    async fn tasks(&self, _split: Split) -> Result<Vec<String>, EnvError> {
        Ok(Vec::new())
    }

    /// Starts an episode of a task; the seed decides the environment's chance.
    ///
    /// # Errors
    /// An environment that cannot start a session.
    async fn open(&self, task: &Task, seed: i64) -> Result<Box<dyn Session>, EnvError>;
}

/// One episode.
#[async_trait]
pub trait Session: Send {
    /// The task, by the environment's own name for it.
    fn task(&self) -> &str;

    /// What the agent sees before its first action: messages, tools and admissible actions.
    fn opening(&self) -> Context;

    /// Answers the policy's reply, which may be no action.
    ///
    /// # Errors
    /// A step after the end, or an environment that fails.
    async fn step(&mut self, read: &Read) -> Result<Step, EnvError>;

    /// Ends the session; a session that is dropped ends by itself.
    async fn close(&mut self) {}
}

/// The environment of a spec.
#[must_use]
pub fn build(spec: &EnvironmentSpec) -> Arc<dyn Environment> {
    match spec {
        EnvironmentSpec::HelpDesk {} => Arc::new(HelpDesk),
        EnvironmentSpec::TwentyQuestions { max_questions, table } => {
            Arc::new(TwentyQuestions::new(*max_questions, *table))
        }
    }
}

/// The environments that are built in, by name.
#[must_use]
pub fn built_in() -> Vec<EnvironmentInfo> {
    let twenty_questions = TwentyQuestions::new(20, ObjectTable::Full);
    let all: [&dyn Environment; 2] = [&HelpDesk, &twenty_questions];
    let info = |environment: &dyn Environment| EnvironmentInfo {
        name: environment.name().to_owned(),
        built_in: true,
        capabilities: environment.capabilities(),
    };
    all.map(info).to_vec()
}

/// A seed stream of its own for each split, so that no held-out episode is a training episode.
fn split_seed(split: Split, seed: i64) -> u64 {
    seed.cast_unsigned() << 1 | u64::from(split == Split::HeldOut)
}

/// A task that there is not.
fn unknown_task(environment: &str, task: &str) -> EnvError {
    EnvError::Permanent {
        environment: environment.to_owned(),
        reason: format!("there is no task {task:?}"),
    }
}
