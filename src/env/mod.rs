//! Environments: the trait and each kind.
//!
//! An environment makes sessions; a session is one episode and is used once. What an environment
//! cannot know is not a number: rewards exist only where the environment gave them.

mod help_desk;
mod twenty_questions;

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::{message::Message, spec::EnvironmentSpec};

pub(crate) use help_desk::Desk;
pub use help_desk::{Field, HelpDesk, Kind};
pub use twenty_questions::TwentyQuestions;
pub(crate) use twenty_questions::small::{Game as SmallGame, table as small_table};

/// Which tasks may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    Train,
    /// To measure with.
    HeldOut,
}

/// How an episode stands after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Continues,
    /// The task ended it.
    Terminated {
        /// The task was solved.
        success: bool,
    },
    /// It was cut by something that is not part of the task.
    Truncated,
}

/// What the environment answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// In words.
    pub observation: String,
    /// Reward of this step.
    pub reward: f64,
    /// How the episode stands.
    pub outcome: Outcome,
}

/// Why an environment failed.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// A step was taken after the end.
    #[error("the episode has ended; start a new session")]
    Ended,
    /// The same replies from the same seed led elsewhere.
    #[error("the environment does not repeat an earlier episode from its seed and replies")]
    Diverged,
}

/// A kind of task.
#[async_trait]
pub trait Environment: Send + Sync {
    /// Its name in specs and rows.
    fn name(&self) -> &'static str;

    /// The action that a reply amounts to, in one canonical form; none if it cannot be read. Two
    /// replies with the same canonical action are the same to the environment.
    fn parse_action(&self, reply: &str) -> Option<String>;

    /// Starts an episode; the seed decides the task and the environment's chance.
    ///
    /// # Errors
    /// An environment that cannot start a session.
    async fn reset(&self, split: Split, seed: i64) -> Result<Box<dyn Session>, EnvError>;
}

/// One episode.
#[async_trait]
pub trait Session: Send {
    /// The task, by the environment's own name for it.
    fn task(&self) -> &str;

    /// What the agent is told before its first action.
    fn opening(&self) -> Vec<Message>;

    /// Answers a reply of the policy, readable or not.
    ///
    /// # Errors
    /// A step after the end, or an environment that fails.
    async fn step(&mut self, reply: &str) -> Result<Step, EnvError>;
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

/// A seed stream of its own for each split, so that no held-out episode is a training episode.
fn split_seed(split: Split, seed: i64) -> u64 {
    seed.cast_unsigned() << 1 | u64::from(split == Split::HeldOut)
}
