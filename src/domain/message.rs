//! Conversations: what an environment and a policy said, as chat messages.

use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Standing instructions.
    System,
    /// The environment.
    User,
    /// The policy.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Speaker,
    /// What was said.
    pub content: String,
}

impl Message {
    /// A standing instruction.
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Speaker::System, content: content.into() }
    }

    /// An utterance of the environment.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Speaker::User, content: content.into() }
    }

    /// An utterance of the policy.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Speaker::Assistant, content: content.into() }
    }
}
