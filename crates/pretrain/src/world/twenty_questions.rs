//! The sentences of Twenty Questions over its small table.

use nlac::{
    env::{
        Split, Word,
        small_questions::{Attribute, Colour, Facts, Game, Kind, Question, Size, Thing},
    },
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

/// Twenty Questions. A reason is an attribute that was not asked for, or the thing that it was. Its base reads no game
/// about a thing that a job holds out, and says all names equally often.
pub struct TwentyQuestions;

impl World for TwentyQuestions {
    fn prompts(&self) -> &'static str {
        "questions"
    }

    fn words(&self) -> Vec<&'static str> {
        let own = ["think", "of", "thing", "facts", "none", "was", "guess"];
        let attributes = Attribute::ALL.iter().map(|attribute| attribute.word());
        let sizes = Size::ALL.iter().map(|size| size.word());
        let colours = Colour::ALL.iter().map(|colour| colour.word());
        let kinds = Kind::ALL.iter().map(|kind| kind.word());
        own.into_iter().chain(attributes).chain(sizes).chain(colours).chain(kinds).collect()
    }

    fn taught(&self) -> Taught<'_> {
        Taught::EveryPart(self)
    }
}

impl Speech for TwentyQuestions {
    fn conversation(&self, rng: &mut ChaCha8Rng) -> Context {
        let trained: Vec<_> = Thing::all().filter(|thing| thing.split() == Split::Train).collect();
        let thing = trained[rng.random_range(0..trained.len())];
        let mut game = Game::new(thing, Attribute::ALL.to_vec(), QUESTIONS);
        let mut messages = vec![Message::user(game.request())];
        for _ in 0..rng.random_range(0..QUESTIONS) {
            let action = self.next_action(&messages, rng);
            // A guess would end the game, and most conversations would be short.
            if matches!(Question::parse(&action), Some(Question::Guess(_))) {
                continue;
            }
            let Ok(step) = game.turn(&action) else { break };
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
        let question = match rng.random_bool(0.25) {
            true => Question::Guess(any_thing(rng)),
            false => Question::Ask(*Attribute::ALL.choose(rng).unwrap_or(&Attribute::Large)),
        };
        question.to_string()
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
        let (mut facts, thing) = (Facts::default(), any_thing(rng));
        for &attribute in Attribute::ALL {
            if rng.random_bool(0.5) {
                facts.learn(attribute, thing);
            }
        }
        let said = self.reply(rng);
        let left = rng.random_range(1..QUESTIONS);
        (said.clone(), format!("{said} facts {facts} left {left}"))
    }

    fn reasons(&self) -> usize {
        Attribute::ALL.len() + Thing::all().count()
    }

    fn reason(&self, reason: usize) -> String {
        match question(reason) {
            Question::Ask(attribute) => format!("{} is unknown", attribute.word()),
            Question::Guess(thing) => format!("it was {thing}"),
        }
    }

    fn advice(&self, reason: usize) -> String {
        match question(reason) {
            Question::Ask(attribute) => format!("ask the {}", attribute.word()),
            Question::Guess(thing) => format!("guess the {thing}"),
        }
    }

    fn advised(&self, reason: usize, _: &[Message]) -> String {
        question(reason).to_string()
    }
}

/// The question that a reason asks for.
fn question(reason: usize) -> Question {
    let asked = Attribute::ALL.iter().copied().map(Question::Ask);
    let mut all = asked.chain(Thing::all().map(Question::Guess));
    all.nth(reason).unwrap_or(Question::Ask(Attribute::Large))
}

fn any_thing(rng: &mut ChaCha8Rng) -> Thing {
    Thing {
        size: *Size::ALL.choose(rng).unwrap_or(&Size::Tiny),
        colour: *Colour::ALL.choose(rng).unwrap_or(&Colour::Brown),
        kind: *Kind::ALL.choose(rng).unwrap_or(&Kind::Bird),
    }
}
