//! The turns of a conversation: what the agent saw, what it did, what came of it.

use super::{
    context::Context,
    message::{Message, Speaker},
};

/// One action in its place.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What the agent saw.
    pub state: Context,
    /// What it did.
    pub action: Message,
    /// What came of it; nothing where the conversation ends with the action.
    pub observation: Vec<Message>,
}

/// The turns of a conversation. What the assistant says before anybody else does is no action: nothing asked for it.
#[must_use]
pub fn turns(whole: &Context) -> Vec<Turn> {
    let messages = whole.messages();
    let asked = |m: &Message| matches!(m.role, Speaker::User | Speaker::Tool);
    let first = messages.iter().position(asked).unwrap_or(messages.len());
    let later = (first..).zip(&messages[first..]);
    let actions: Vec<_> =
        later.filter(|(_, m)| m.role == Speaker::Assistant).map(|(place, _)| place).collect();
    let ends = actions.iter().skip(1).copied().chain([messages.len()]);
    let turn = |(&action, end): (&usize, usize)| Turn {
        state: whole.prefix(action),
        action: messages[action].clone(),
        observation: messages[action + 1..end].to_vec(),
    };
    actions.iter().zip(ends).map(turn).collect()
}
