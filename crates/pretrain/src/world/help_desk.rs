//! The help desk's sentences.

use nlac::{
    env::{Desk, Field, Kind},
    experience::message::Message,
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::World;

/// The help desk. A reason is the field that is missing; the last one is that nothing is.
pub struct HelpDesk;

impl World for HelpDesk {
    fn prompts(&self) -> &'static str {
        "desk"
    }

    fn words(&self) -> Vec<&'static str> {
        let kinds = Kind::ALL.iter().map(|k| k.word());
        kinds.chain(Field::ALL.iter().map(|f| f.word())).collect()
    }

    fn conversation(&self, rng: &mut ChaCha8Rng) -> Vec<Message> {
        let kind = Kind::ALL[rng.random_range(0..Kind::ALL.len())];
        let mut desk = Desk::new(kind);
        let mut messages = vec![Message::user(desk.request())];
        for _ in 0..rng.random_range(0..5) {
            let action =
                if rng.random_bool(0.15) { "please wait .".into() } else { ask(any_field(rng)) };
            if let Ok(step) = desk.turn(&action) {
                messages.push(Message::assistant(action));
                messages.extend(step.messages);
            }
        }
        messages
    }

    fn any_action(&self, rng: &mut ChaCha8Rng) -> String {
        match rng.random_range(0..Field::ALL.len() + 2) {
            0 => "do it now .".into(),
            1 => "please wait .".into(),
            _ => ask(any_field(rng)),
        }
    }

    fn weak_action(&self, rng: &mut ChaCha8Rng) -> String {
        match rng.random_range(0..100) {
            0..30 => "do it now .".into(),
            30..45 => "please wait .".into(),
            _ => ask(any_field(rng)),
        }
    }

    fn reply(&self, rng: &mut ChaCha8Rng) -> String {
        if rng.random_bool(0.04) {
            return "what".into();
        }
        (*["here it is", "i told you", "ok"].choose(rng).unwrap_or(&"ok")).to_owned()
    }

    fn turn(&self, rng: &mut ChaCha8Rng) -> (String, String) {
        let filled: Vec<_> =
            Field::ALL.iter().filter(|_| rng.random_bool(0.4)).map(|f| f.word()).collect();
        let form = if filled.is_empty() { "empty".to_owned() } else { filled.join(" ") };
        let said = self.reply(rng);
        let observation = format!("{said} form {form} left {}", rng.random_range(1..=4));
        (said, observation)
    }

    fn reasons(&self) -> usize {
        Field::ALL.len() + 1
    }

    fn reason(&self, reason: usize) -> String {
        format!("{} is missing", Field::ALL.get(reason).map_or("nothing", |f| f.word()))
    }

    fn advice(&self, reason: usize) -> String {
        Field::ALL
            .get(reason)
            .map_or_else(|| "do it now".into(), |field| format!("ask the {}", field.word()))
    }

    fn advised(&self, reason: usize) -> String {
        Field::ALL.get(reason).map_or_else(|| "do it now .".into(), |field| ask(*field))
    }
}

fn any_field(rng: &mut ChaCha8Rng) -> Field {
    Field::ALL[rng.random_range(0..Field::ALL.len())]
}

fn ask(field: Field) -> String {
    format!("what is your {} ?", field.word())
}
