//! The critic and the policy as others ask them: about any action in any state, by any version.

use super::{context::Context, message::Message};
use async_trait::async_trait;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{
    annotation::Verdict,
    fault::Fault,
    generation::{FinishReason, Generation, Role, Sampling, Weights},
    ids::{CheckpointId, JobId, TransitionId},
    text_enum::text_enum,
};

/// Whose words are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Every part is played as the job's spec says, by the adapters of the checkpoint's version.
    Checkpoint(CheckpointId),
    /// The job's promoted checkpoint.
    Promoted(JobId),
    /// The job's base model plays every part that an adapter plays.
    Base(JobId),
}

/// A conversation that waits for an action.
#[derive(Debug, Clone)]
pub enum State {
    /// What stood before a stored transition's action.
    Transition(TransitionId),
    /// As the policy sees it, the environment's opening first.
    Conversation(Context),
}

/// Where the random choices come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chance {
    /// The same number chooses the same.
    Seed(u64),
    /// As the job chose when an iteration of its own annotated the transition.
    Annotation {
        /// Number of the iteration.
        iteration: i32,
    },
}

/// What is asked about an action.
#[derive(Debug, Clone)]
pub struct Question {
    /// Who is asked.
    pub version: Version,
    /// Where the action stands.
    pub state: State,
    /// The action; a stored transition's own unless given.
    pub action: Option<Message>,
    /// Where the random choices come from.
    pub chance: Chance,
    /// What is wanted.
    pub wanted: Wanted,
}

/// What is wanted of the critic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Futures and a verdict.
    Critique,
    /// That, and the action refined.
    Refinement {
        /// Rounds; as many as the spec has unless given.
        rounds: Option<u32>,
    },
}

text_enum!(
    /// Why the rounds ended.
    AdviceOutcome {
        /// A verdict was Yes: the critic takes the action as it then stood for optimal.
        Accepted = "accepted",
        /// The rounds are spent, and the action is another one.
        Refined = "refined",
        /// The rounds are spent, and the action is the same to the environment.
        Unchanged = "unchanged",
        /// A critique holds no verdict that can be read; the action stays as it stood before.
        NoVerdict = "no_verdict",
        /// The environment cannot read a refined action; it stays as it stood before.
        Unreadable = "unreadable",
    }
);

/// A generated text and what made it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = GeneratedText)]
pub struct Said {
    /// The text.
    pub text: String,
    /// The part played.
    pub role: Role,
    /// The weights that played it.
    pub weights: Weights,
    /// The checkpoint behind them; null for the base model and a frozen one.
    pub checkpoint_id: Option<CheckpointId>,
    /// The model name that the engine echoed: an adapter's own name.
    pub model: String,
    /// Of the adapter's tensors, hex; null for the base model and a frozen one.
    pub sha256: Option<String>,
    /// The engine that answered.
    pub engine: String,
    /// Content hash of the prompt template.
    pub prompt_hash: String,
    /// Temperature, most tokens, and the request's own seed.
    pub sampling: Sampling,
    /// Tokens of the prompt.
    pub prompt_tokens: i32,
    /// Tokens written.
    pub token_ids: Vec<i32>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

impl Said {
    /// A generation, by an adapter with this hash.
    #[must_use]
    pub fn of(generation: &Generation, sha256: Option<String>) -> Self {
        Self {
            text: generation.text.clone(),
            role: generation.role,
            weights: generation.weights,
            checkpoint_id: generation.checkpoint_id,
            model: generation.model.clone(),
            sha256,
            engine: generation.engine.clone(),
            prompt_hash: generation.prompt_hash.clone(),
            sampling: generation.sampling,
            prompt_tokens: generation.prompt_tokens,
            token_ids: generation.token_ids.clone(),
            finish_reason: generation.finish_reason,
        }
    }
}

/// One round: an action is judged and, if it is found wanting, rewritten.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AdviceRound)]
pub struct Round {
    /// The action judged.
    pub action: String,
    /// What is predicted to come of it.
    pub futures: Vec<Said>,
    /// Optimal or not.
    pub verdict: Verdict,
    /// Why, and what instead.
    pub critique: Said,
    /// The action that the critique led to; null where none was asked for.
    pub refinement: Option<Refined>,
}

/// A rewritten action.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = RefinedAction)]
pub struct Refined {
    /// The environment can read it.
    pub valid: bool,
    /// It is another action to the environment than the one before.
    pub changed: bool,
    /// The text and what made it.
    #[serde(flatten)]
    pub said: Said,
}

/// What was read and written for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Usage {
    /// Generations.
    pub generations: u32,
    /// Tokens of their prompts.
    pub prompt_tokens: i64,
    /// Tokens written.
    pub completion_tokens: i64,
}

/// What the critic says about an action.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Advice {
    /// The job whose prompts, sampling and weights it is.
    pub job_id: JobId,
    /// The version whose adapters spoke; null where the base model did.
    pub version: Option<i32>,
    /// The action asked about.
    pub action: String,
    /// The environment can read it.
    pub readable: bool,
    /// Why the rounds ended.
    pub outcome: AdviceOutcome,
    /// The action as the rounds left it.
    pub refined: String,
    /// That is another action to the environment than the one asked about.
    pub changed: bool,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
    /// What was read and written.
    pub usage: Usage,
}

/// What the policy does in a state.
#[derive(Debug, Clone)]
pub struct Acts {
    /// The version that acts; none is the base model.
    pub version: Option<i32>,
    /// The likeliest action.
    pub greedy: Said,
    /// Actions at the temperature that the job acts with.
    pub samples: Vec<Said>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// There is no such thing.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// It cannot be asked of whom it is asked.
    #[error("{what}")]
    Impossible {
        /// What does not fit.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// It cannot be answered as things stand.
    #[error("{what}")]
    Conflict {
        /// What is in the way.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Too many others ask.
    #[error("{asked} questions are being answered or wait already")]
    Busy {
        /// How many.
        asked: usize,
    },
    /// An engine failed.
    #[error(transparent)]
    Failed(#[from] Fault),
    /// The database did not answer.
    #[error("the database did not answer: {0}")]
    Unavailable(String),
}

/// Asks versions of a job.
#[async_trait]
pub trait Consult: Send + Sync {
    /// What the critic says about an action.
    async fn advise(&self, question: &Question) -> Result<Advice, Unanswered>;

    /// Has a checkpoint's adapter loaded on its job's engine, tried, and notes that it is there.
    async fn keep(&self, checkpoint: CheckpointId) -> Result<(), Unanswered>;

    /// What the policy does in a state: its greedy action and `samples` others.
    async fn act(
        &self,
        version: Version,
        state: &State,
        seed: u64,
        samples: u32,
    ) -> Result<Acts, Unanswered>;
}
