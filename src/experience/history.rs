//! Everything that the agent of an episode saw: its contexts, and how they grew out of each other.
//!
//! An agent that only appends has one context. One that rewrites, compacts or branches its history has several; each
//! begins like an earlier one, as far as they agree.

use std::sync::Arc;

use super::{
    context::{Context, Frame},
    message::Message,
};

/// The first messages of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which context, from 0.
    pub context: usize,
    /// How many messages.
    pub length: usize,
}

/// A conversation that only grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The context that it begins like, if any, and how many messages they share.
    pub grown_from: Option<Place>,
    /// All of its messages, the shared ones included.
    pub messages: Vec<Message>,
    /// Its tools and switches.
    pub frame: Arc<Frame>,
}

impl Branch {
    /// The messages that are its own.
    #[must_use]
    pub fn own(&self) -> &[Message] {
        &self.messages[self.grown_from.map_or(0, |place| place.length)..]
    }
}

/// The contexts of an episode.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    branches: Vec<Branch>,
}

impl History {
    /// Of an agent that appended to one conversation.
    #[must_use]
    pub fn of(whole: &Context) -> Self {
        let (messages, frame) = (whole.messages().to_vec(), whole.frame().clone());
        Self { branches: vec![Branch { grown_from: None, messages, frame }] }
    }

    /// Of branches as they were stored: each with its own messages alone, after those that it grew from.
    #[must_use]
    pub fn stored(
        branches: impl IntoIterator<Item = (Option<Place>, Vec<Message>, Frame)>,
    ) -> Self {
        let mut history = Self::default();
        for (grown_from, own, frame) in branches {
            let mut messages =
                grown_from.map_or_else(Vec::new, |place| history.said(place).to_vec());
            messages.extend(own);
            history.branches.push(Branch { grown_from, messages, frame: frame.into() });
        }
        history
    }

    /// Its contexts, in the order in which they began.
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// What the model saw at a place.
    #[must_use]
    pub fn context(&self, place: Place) -> Context {
        let frame = self.branches.get(place.context).map(|branch| branch.frame.clone());
        Context::new(self.said(place).to_vec(), frame.unwrap_or_default())
    }

    fn said(&self, place: Place) -> &[Message] {
        let all = self.branches.get(place.context).map_or(&[][..], |branch| &branch.messages);
        &all[..place.length.min(all.len())]
    }

    /// The agent sees `state`: a context grows to it, or another begins.
    pub fn see(&mut self, state: &Context) -> Place {
        let (messages, frame) = (state.messages(), state.frame());
        let agreed = |branch: &Branch| {
            let pairs = branch.messages.iter().zip(messages);
            pairs.take_while(|(before, now)| before == now).count()
        };
        // Of contexts that agree as far, the newest: it is the one that goes on.
        let nearest = self.branches.iter().enumerate().filter(|(_, branch)| branch.frame == *frame);
        let nearest = nearest.map(|(context, branch)| Place { context, length: agreed(branch) });
        let nearest = nearest.max_by_key(|place| (place.length, place.context));
        if let Some(place) = nearest {
            let branch = &mut self.branches[place.context];
            if place.length == branch.messages.len() || place.length == messages.len() {
                branch.messages.extend_from_slice(&messages[place.length..]);
                return Place { length: messages.len(), ..place };
            }
        }
        let grown_from = nearest.filter(|place| place.length > 0);
        self.begin(grown_from, messages.to_vec(), frame.clone())
    }

    /// Something is said at a place. Where the context has gone on otherwise, another one begins.
    pub fn say(&mut self, place: Place, message: Message) -> Place {
        let branch = &mut self.branches[place.context];
        let next = Place { length: place.length + 1, ..place };
        match branch.messages.get(place.length) {
            None => branch.messages.push(message),
            Some(said) if *said == message => {}
            Some(_) => {
                let frame = branch.frame.clone();
                let messages = self.said(place).iter().cloned().chain([message]).collect();
                return self.begin(Some(place), messages, frame);
            }
        }
        next
    }

    fn begin(
        &mut self,
        grown_from: Option<Place>,
        messages: Vec<Message>,
        frame: Arc<Frame>,
    ) -> Place {
        let place = Place { context: self.branches.len(), length: messages.len() };
        self.branches.push(Branch { grown_from, messages, frame });
        place
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Place};
    use crate::experience::{context::Context, message::Message};

    fn said(texts: &str) -> Context {
        let message = |(n, text): (usize, &str)| match n % 2 {
            0 => Message::user(text),
            _ => Message::assistant(text),
        };
        Context::of(texts.split(' ').enumerate().map(message).collect())
    }

    const fn at(context: usize, length: usize) -> Place {
        Place { context, length }
    }

    #[test]
    fn an_agent_that_appends_has_one_context() {
        let mut history = History::default();
        let first = history.see(&said("a"));
        assert_eq!(history.say(first, Message::assistant("b")), at(0, 2));
        assert_eq!(history.see(&said("a b c")), at(0, 3));
        assert_eq!(history, History::of(&said("a b c")));
        assert_eq!(history.context(at(0, 2)).messages(), said("a b").messages());
    }

    #[test]
    fn a_rewritten_history_begins_another_context_that_keeps_what_is_shared() {
        let mut history = History::of(&said("a b c d e"));
        assert_eq!(history.see(&said("a b summary")), at(1, 3));
        assert_eq!(history.branches()[1].grown_from, Some(at(0, 2)));
        assert_eq!(history.branches()[1].own(), [Message::user("summary")]);
        assert_eq!(history.see(&said("new")), at(2, 1));
        assert_eq!(history.branches()[2].grown_from, None);
        // The newest that agrees goes on.
        assert_eq!(history.see(&said("a b summary d")), at(1, 4));
        let stored = history.branches().iter();
        let stored = stored.map(|b| (b.grown_from, b.own().to_vec(), b.frame.as_ref().clone()));
        assert_eq!(History::stored(stored.collect::<Vec<_>>()), history);
    }

    #[test]
    fn two_replies_to_one_state_are_two_contexts() {
        let mut history = History::of(&said("a"));
        assert_eq!(history.say(at(0, 1), Message::assistant("b")), at(0, 2));
        assert_eq!(history.say(at(0, 1), Message::assistant("b")), at(0, 2));
        assert_eq!(history.say(at(0, 1), Message::assistant("x")), at(1, 2));
        assert_eq!(history.see(&said("a")).length, 1);
    }
}
