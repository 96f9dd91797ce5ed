//! A prompt set tried on a stored transition: what each part would be asked, and what would be read in a reply.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::message::Message;
use crate::domain::{
    annotation::{TargetStatus, Verdict},
    fault::Fault,
    ids::TransitionId,
    prompt::{PromptFiles, PromptHashes, PromptMistake, PromptPart},
    text_enum::text_enum,
};

text_enum!(
    /// Where a text of a dry run comes from.
    TextSource {
        /// The caller gave it.
        Given = "given",
        /// The newest one that is stored for the transition.
        Stored = "stored",
        /// Neither is there: it is made up.
        MadeUp = "made_up",
    }
);

text_enum!(
    /// How a predicted future ends.
    PredictedEnd {
        /// Well.
        Success = "success",
        /// Badly.
        Failure = "failure",
    }
);

/// What is tried.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// The set.
    pub set: String,
    /// Texts of its parts.
    pub files: PromptFiles,
    /// The transition.
    pub transition: TransitionId,
    /// What the parts are supposed to reply.
    pub replies: BTreeMap<PromptPart, String>,
}

/// What a part would be asked, and what would be read in its reply.
#[derive(Debug, Clone)]
pub struct TriedPart {
    /// The part.
    pub part: PromptPart,
    /// The rendered prompt.
    pub messages: Vec<Message>,
    /// Where the texts of its variables come from; those that the transition itself holds are left out.
    pub variables: BTreeMap<&'static str, TextSource>,
    /// The reply that is read; none where there is none.
    pub reply: Option<TriedReply>,
}

/// A reply and what is read in it.
#[derive(Debug, Clone)]
pub struct TriedReply {
    /// The text.
    pub text: String,
    /// Where it comes from.
    pub source: TextSource,
    /// What is read in it.
    pub reading: Reading,
}

/// What is read in a reply; what its part does not say is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The evaluator's verdict.
    pub verdict: Option<Verdict>,
    /// Whether a prediction or target has the form that the set demands of a target.
    pub target_form: Option<bool>,
    /// Whether a target would be trained on.
    pub target_status: Option<TargetStatus>,
    /// How a prediction or target ends, where it says so.
    pub outcome: Option<PredictedEnd>,
    /// The key of the action that the policy or the refiner wrote.
    pub action_key: Option<String>,
    /// Why its reply is no action.
    pub unreadable: Option<String>,
    /// The scalar critic's number.
    pub value: Option<u32>,
    /// The number of the candidate that the chooser names, from 1.
    pub choice: Option<usize>,
}

/// Why a set was not tried.
#[derive(Debug, thiserror::Error)]
pub enum NotTried {
    /// There is no such transition.
    #[error("there is no transition {0}")]
    NoTransition(TransitionId),
    /// The files are not what they should be.
    #[error("the prompt set cannot be used")]
    Mistaken(Vec<PromptMistake>),
    /// A part cannot be rendered on this transition.
    #[error("{0}")]
    NotRendered(String),
    /// The database did not answer.
    #[error(transparent)]
    Unavailable(#[from] Fault),
}

/// Reads and tries prompt sets.
#[async_trait]
pub trait Prompts: Send + Sync {
    /// The content hashes of a set's files.
    ///
    /// # Errors
    /// All that is wrong with them.
    fn check(&self, set: &str, files: &PromptFiles) -> Result<PromptHashes, Vec<PromptMistake>>;

    /// Renders each part on a stored transition, and reads its reply.
    async fn dry_run(&self, asked: &DryRun) -> Result<Vec<TriedPart>, NotTried>;
}
