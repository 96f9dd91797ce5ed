//! Calls of a model, each with all that the agent sent, put together to the history that they were made in.

use super::{
    context::Context,
    history::{History, Place},
    message::Message,
};

/// An action and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// What the agent saw.
    pub state: Place,
    /// What it did.
    pub action: Message,
    /// What it sees next.
    pub next: Place,
}

/// The history of calls in their order. What the agent sees after a call is the first later call that continues
/// it. Without one, the agent rewrote its history, and it is the next call. After the last it sees its own
/// reply.
#[must_use]
pub fn taken(calls: impl IntoIterator<Item = (Context, Message)>) -> (History, Vec<Taken>) {
    let mut history = History::default();
    let mut taken: Vec<Taken> = Vec::new();
    for (context, action) in calls {
        let seen = history.see(&context);
        let next = history.say(seen, action.clone());
        // Another reply to the same state stands in a context of its own.
        let state = Place { length: next.length - 1, ..next };
        taken.push(Taken { state, action, next });
    }
    let states: Vec<_> = taken.iter().map(|step| step.state).collect();
    for (number, step) in (1..).zip(&mut taken) {
        let later = &states[number..];
        let goes_on = |state: &&Place| {
            let repeated = history.said(**state).get(step.state.length);
            history.stands_after(**state, step.state)
                && repeated.is_some_and(|message| message.repeats(&step.action))
        };
        if let Some(next) = later.iter().find(goes_on).or_else(|| later.first()) {
            step.next = *next;
        }
    }
    (history, taken)
}
