//! What is asked of which weights, and which training examples come out.
//!
//! Pure over ports: an algorithm gets an engine, a prompt set and stored transitions, and returns
//! records. It opens no socket and no transaction, so every invariant is a fast test with a counting
//! engine, and the same code runs against vLLM.

pub mod minibatch;
pub mod nlac;
pub mod rejection;
pub mod replay;

use crate::domain::{episode::Transition, message::Message};

/// A stored transition with the conversation that it is a step of.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The step.
    pub transition: Transition,
    /// The whole episode's messages.
    pub messages: Vec<Message>,
    /// The action as the engine wrote it, end-of-text included.
    pub action_tokens: Vec<u32>,
    /// Its place in the iteration's batch: names its random choices.
    pub position: u64,
}

impl Replayed {
    /// s: everything said before the action.
    #[must_use]
    pub fn state(&self) -> &[Message] {
        &self.messages[..self.state_len()]
    }

    /// s': the state, the action and what the environment answered.
    #[must_use]
    pub fn next_state(&self) -> &[Message] {
        &self.messages[..(self.state_len() + 2).min(self.messages.len())]
    }

    fn state_len(&self) -> usize {
        usize::try_from(self.transition.state_len).unwrap_or(0).min(self.messages.len())
    }
}
