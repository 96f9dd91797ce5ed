//! The sentences of Twenty Questions over its small table.

use nlac::{
    env::{End, SmallGame, small_table},
    experience::{
        context::Context,
        message::{Message, Speaker},
    },
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::{Speech, Taught, World};

/// Turns of the conversations that the base reads.
const QUESTIONS: u32 = 8;

/// Twenty Questions. A reason is an attribute that was not asked for, or the object that it was.
pub struct TwentyQuestions;

impl World for TwentyQuestions {
    fn prompts(&self) -> &'static str {
        "questions"
    }

    fn words(&self) -> Vec<&'static str> {
        let own = ["think", "of", "thing", "facts", "none", "was", "guess"];
        own.into_iter().chain(small_table::ATTRIBUTES).chain(small_table::OBJECTS).collect()
    }

    fn taught(&self) -> Taught<'_> {
        Taught::EveryPart(self)
    }
}

impl Speech for TwentyQuestions {
    fn conversation(&self, rng: &mut ChaCha8Rng) -> Context {
        let object = rng.random_range(0..small_table::OBJECTS.len());
        let mut game = SmallGame::new(object, QUESTIONS);
        let mut messages = vec![Message::user(game.request())];
        for _ in 0..rng.random_range(0..QUESTIONS) {
            let action = self.next_action(&messages, rng);
            let Ok(step) = game.turn(&action) else { break };
            if step.end != End::Continues {
                break;
            }
            messages.push(Message::assistant(action));
            messages.extend(step.messages);
        }
        Context::of(messages)
    }

    fn any_action(&self, conversation: &[Message], rng: &mut ChaCha8Rng) -> String {
        self.advised(rng.random_range(0..self.reasons()), conversation)
    }

    /// One guess among four actions.
    fn weak_action(&self, _: &[Message], rng: &mut ChaCha8Rng) -> String {
        let any = |words: &[&'static str], rng: &mut _| {
            small_table::question(words.choose(rng).unwrap_or(&"thing"))
        };
        if rng.random_bool(0.25) {
            any(&small_table::OBJECTS, rng)
        } else {
            any(&small_table::ATTRIBUTES, rng)
        }
    }

    /// Often what was asked before: a part must read what it is told, not what was repeated.
    fn next_action(&self, conversation: &[Message], rng: &mut ChaCha8Rng) -> String {
        let asked: Vec<_> =
            conversation.iter().filter(|message| message.role == Speaker::Assistant).collect();
        match asked.choose(rng) {
            Some(again) if rng.random_bool(0.5) => again.written().into_owned(),
            _ => self.weak_action(conversation, rng),
        }
    }

    fn reply(&self, rng: &mut ChaCha8Rng) -> String {
        if rng.random_bool(0.04) {
            return "what".into();
        }
        (*["yes", "no"].choose(rng).unwrap_or(&"no")).to_owned()
    }

    fn turn(&self, rng: &mut ChaCha8Rng) -> (String, String) {
        let known: Vec<_> = small_table::ATTRIBUTES
            .iter()
            .map(|_| rng.random_bool(0.5).then(|| rng.random_bool(0.5)))
            .collect();
        let said = self.reply(rng);
        let left = rng.random_range(1..QUESTIONS);
        (said.clone(), format!("{said} facts {} left {left}", small_table::facts(&known)))
    }

    fn reasons(&self) -> usize {
        small_table::ATTRIBUTES.len() + small_table::OBJECTS.len()
    }

    fn reason(&self, reason: usize) -> String {
        small_table::ATTRIBUTES.get(reason).map_or_else(
            || format!("it was {}", object(reason)),
            |attribute| format!("{attribute} is unknown"),
        )
    }

    fn advice(&self, reason: usize) -> String {
        small_table::ATTRIBUTES.get(reason).map_or_else(
            || format!("guess the {}", object(reason)),
            |attribute| format!("ask the {attribute}"),
        )
    }

    fn advised(&self, reason: usize, _: &[Message]) -> String {
        let attribute = small_table::ATTRIBUTES.get(reason).copied();
        small_table::question(attribute.unwrap_or_else(|| object(reason)))
    }
}

fn object(reason: usize) -> &'static str {
    small_table::OBJECTS[reason - small_table::ATTRIBUTES.len()]
}
