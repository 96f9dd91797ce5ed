//! What the base is taught: the form of every part, and nothing that the loop is to learn.
//!
//! Futures are drawn at random, independent of state and action, so the successor starts without any
//! knowledge of outcomes. The evaluator is taught to read a forecast's end, the refiner to do what a
//! critique says, the Bellman backup to join two texts: reading skills, no strategy.

use nlac_local::train::Example;
use rand::{Rng, seq::IndexedRandom};

use super::vocabulary::EOS;
use crate::{
    domain::message::Message,
    env::{Desk, Field, Kind},
    prompt::{Encoder, PromptError, PromptSet, Template},
};

/// How often each part is practised.
const MIXTURE: [(Part, f64); 5] = [
    (Part::Policy, 0.22),
    (Part::Successor, 0.13),
    (Part::Bellman, 0.20),
    (Part::Evaluator, 0.20),
    (Part::Refiner, 0.25),
];

#[derive(Clone, Copy)]
enum Part {
    Policy,
    Successor,
    Bellman,
    Evaluator,
    Refiner,
}

/// Generator of training text.
pub struct Curriculum<'a> {
    prompts: &'a PromptSet,
    encoder: &'a Encoder,
}

impl<'a> Curriculum<'a> {
    /// Over a prompt set and a tokenizer.
    ///
    /// # Errors
    /// None yet; a vocabulary that lacks a prompt's word shows in [`Self::batch`].
    pub const fn new(prompts: &'a PromptSet, encoder: &'a Encoder) -> Result<Self, PromptError> {
        Ok(Self { prompts, encoder })
    }

    /// Draws a batch.
    pub fn batch(&self, size: usize, rng: &mut impl Rng) -> Result<Vec<Example>, PromptError> {
        (0..size).map(|_| self.example(rng)).collect()
    }

    fn example(&self, rng: &mut impl Rng) -> Result<Example, PromptError> {
        let mut draw: f64 = rng.random();
        let part = MIXTURE
            .iter()
            .find(|(_, share)| {
                draw -= share;
                draw < 0.0
            })
            .map_or(Part::Refiner, |(part, _)| *part);
        let state = conversation(rng);
        let action = if rng.random_bool(0.5) { any_action(rng) } else { weak_action(rng) };
        let nothing = serde_json::json!({});
        match part {
            Part::Policy => {
                self.supervise(self.prompts.policy(), &state, "", &nothing, &weak_action(rng))
            }
            Part::Successor => {
                let future = future(rng);
                self.supervise(self.prompts.successor(), &state, &action, &nothing, &future)
            }
            Part::Bellman => self.bellman(&state, &action, rng),
            Part::Evaluator => {
                let count = rng.random_range(1..=3);
                let futures: Vec<_> = (0..count).map(|_| future(rng)).collect();
                let verdict = verdict(&futures);
                let variables = serde_json::json!({ "futures": futures });
                self.supervise(self.prompts.evaluator(), &state, &action, &variables, &verdict)
            }
            Part::Refiner => {
                let approved = rng.random_bool(0.2);
                let why = if approved { None } else { Some(any_lack(rng)) };
                let obeyed = match why {
                    None => action.clone(),
                    Some(None) => "do it now .".to_owned(),
                    Some(Some(field)) => ask(field),
                };
                let variables = serde_json::json!({ "critique": critique(why) });
                self.supervise(self.prompts.refiner(), &state, &action, &variables, &obeyed)
            }
        }
    }

    fn bellman(
        &self,
        state: &[Message],
        action: &str,
        rng: &mut impl Rng,
    ) -> Result<Example, PromptError> {
        let draw: f64 = rng.random();
        let lack = word(any_lack(rng));
        let ending = if draw < 0.2 {
            Some(("done solved".to_owned(), "done solved".to_owned(), "solved".to_owned(), 1))
        } else if draw < 0.4 {
            let said = format!("refused {lack} is missing");
            Some((said.clone(), said, format!("lost {lack} is missing"), 0))
        } else if draw < 0.55 {
            let said = reply(rng);
            let end = format!("lost {lack} is missing");
            Some((format!("{said} closed {lack} is missing"), said, end, 0))
        } else {
            None
        };
        if let Some((observation, short, end, reward)) = ending {
            let variables =
                serde_json::json!({ "observation": observation, "reward": reward.to_string() });
            let target = format!("next {short} then nothing end {end}");
            let template = self.prompts.bellman_terminal();
            return self.supervise(template, state, action, &variables, &target);
        }
        let filled: Vec<_> =
            Field::ALL.iter().filter(|_| rng.random_bool(0.4)).map(|f| f.word()).collect();
        let form = if filled.is_empty() { "empty".to_owned() } else { filled.join(" ") };
        let said = reply(rng);
        let observation = format!("{said} form {form} left {}", rng.random_range(1..=4));
        let later = future(rng);
        let (next, end) = parts(&later);
        let variables = serde_json::json!({
            "observation": observation, "reward": "0", "prediction": later,
        });
        let target = format!("next {said} then {next} end {end}");
        self.supervise(self.prompts.bellman(), state, action, &variables, &target)
    }

    fn supervise(
        &self,
        template: &Template,
        state: &[Message],
        action: &str,
        variables: &serde_json::Value,
        target: &str,
    ) -> Result<Example, PromptError> {
        let prompt = self.encoder.encode(&template.render(state, Some(action), variables)?)?;
        let mut tokens = prompt.clone();
        tokens.extend(self.encoder.encode_text(target)?);
        tokens.push(EOS);
        let weights = (1..tokens.len()).map(|i| f32::from(u8::from(i >= prompt.len()))).collect();
        Ok(Example {
            input: tokens[..tokens.len() - 1].to_vec(),
            targets: tokens[1..].to_vec(),
            weights,
        })
    }
}

/// A conversation that is still open, with a customer of a random kind and random questions.
fn conversation(rng: &mut impl Rng) -> Vec<Message> {
    let kind = Kind::ALL[rng.random_range(0..Kind::ALL.len())];
    let mut desk = Desk::new(kind);
    let mut messages = vec![Message::user(desk.request())];
    for _ in 0..rng.random_range(0..5) {
        let action =
            if rng.random_bool(0.15) { "please wait .".into() } else { ask(any_field(rng)) };
        if let Ok(step) = desk.turn(&action) {
            messages.push(Message::assistant(action));
            messages.push(Message::user(step.observation));
        }
    }
    messages
}

fn any_field(rng: &mut impl Rng) -> Field {
    Field::ALL[rng.random_range(0..Field::ALL.len())]
}

/// What a form may lack: a field, or nothing.
fn any_lack(rng: &mut impl Rng) -> Option<Field> {
    let draw = rng.random_range(0..=Field::ALL.len());
    Field::ALL.get(draw).copied()
}

fn word(lack: Option<Field>) -> &'static str {
    lack.map_or("nothing", Field::word)
}

fn ask(field: Field) -> String {
    format!("what is your {} ?", field.word())
}

fn any_action(rng: &mut impl Rng) -> String {
    match rng.random_range(0..Field::ALL.len() + 2) {
        0 => "do it now .".into(),
        1 => "please wait .".into(),
        _ => ask(any_field(rng)),
    }
}

/// The policy that the base starts with.
fn weak_action(rng: &mut impl Rng) -> String {
    match rng.random_range(0..100) {
        0..30 => "do it now .".into(),
        30..45 => "please wait .".into(),
        _ => ask(any_field(rng)),
    }
}

fn reply(rng: &mut impl Rng) -> String {
    if rng.random_bool(0.04) {
        return "what".into();
    }
    (*["here it is", "i told you", "ok"].choose(rng).unwrap_or(&"ok")).to_owned()
}

/// A random future, in form.
fn future(rng: &mut impl Rng) -> String {
    let end = if rng.random_bool(0.25) {
        "solved".to_owned()
    } else {
        format!("lost {} is missing", word(any_lack(rng)))
    };
    let last = |rng: &mut _| {
        if end == "solved" {
            "done solved".to_owned()
        } else if Rng::random_bool(rng, 0.6) {
            end.replacen("lost", "refused", 1)
        } else {
            reply(rng)
        }
    };
    if rng.random_bool(0.3) {
        return format!("next {} then nothing end {end}", last(rng));
    }
    let first = reply(rng);
    let then = if rng.random_bool(0.6) { reply(rng) } else { last(rng) };
    format!("next {first} then {then} end {end}")
}

/// `next` and `end` of a future in form.
fn parts(future: &str) -> (&str, &str) {
    let body = future.strip_prefix("next ").unwrap_or(future);
    let (next, rest) = body.split_once(" then ").unwrap_or((body, ""));
    (next, rest.rsplit_once("end ").map_or("", |(_, end)| end))
}

/// What the evaluator says of forecasts: the first that is lost decides, and says what lacked.
fn verdict(futures: &[String]) -> String {
    let lost = futures.iter().find_map(|f| parts(f).1.strip_prefix("lost "));
    match lost.and_then(|lost| lost.split(' ').next()) {
        None => critique(None),
        Some(lack) => critique(Some(Field::ALL.iter().copied().find(|f| f.word() == lack))),
    }
}

/// A critique's text: none approves, otherwise what lacks and so what to do.
fn critique(why: Option<Option<Field>>) -> String {
    match why {
        None => "yes because it ends solved".into(),
        Some(None) => "no because nothing is missing so do it now".into(),
        Some(Some(field)) => {
            format!("no because {0} is missing so ask the {0}", field.word())
        }
    }
}
