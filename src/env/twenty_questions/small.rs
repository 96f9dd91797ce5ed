//! The small table: sixteen objects and five attributes, in sentences that a model of a hundred words
//! can read. What is known so far is repeated in every answer, and the first guess ends the game. A game
//! that is lost tells the first attribute that was not asked for, or, when all were, the object.

use async_trait::async_trait;

use super::{Context, End, EnvError, Message, Read, Session, Step};

/// The words of the table.
pub mod table {
    /// What can be asked for, in the order in which an omission is named.
    pub const ATTRIBUTES: [&str; 5] = ["legs", "flies", "water", "large", "wild"];

    /// What can be guessed.
    pub const OBJECTS: [&str; 16] = [
        "dog",
        "horse",
        "elephant",
        "mouse",
        "whale",
        "dolphin",
        "bat",
        "eagle",
        "penguin",
        "parrot",
        "goldfish",
        "snake",
        "crocodile",
        "turtle",
        "boat",
        "kite",
    ];

    /// The question that asks for an attribute, or guesses an object.
    #[must_use]
    pub fn question(word: &str) -> String {
        format!("is it {word} ?")
    }

    /// What is known of each attribute, in words.
    #[must_use]
    pub fn facts(known: &[Option<bool>]) -> String {
        let said = ATTRIBUTES.iter().zip(known).filter_map(|(attribute, known)| {
            known.map(|yes| format!("{attribute} {}", if yes { "yes" } else { "no" }))
        });
        let said: Vec<_> = said.collect();
        if said.is_empty() { "none".into() } else { said.join(" ") }
    }
}

/// The question in its canonical form; none if it asks for nothing that the table holds.
pub(super) fn parse(reply: &str) -> Option<String> {
    let word = reply.trim().strip_prefix("is it ")?.strip_suffix(" ?")?;
    let known = table::ATTRIBUTES.contains(&word) || table::OBJECTS.contains(&word);
    known.then(|| table::question(word))
}

/// One game.
pub struct Game {
    object: usize,
    /// What the table says of the object.
    truth: Vec<bool>,
    known: Vec<Option<bool>>,
    left: u32,
    ended: bool,
}

impl Game {
    /// About an object of the table, lost after `questions`.
    #[must_use]
    pub fn new(object: usize, questions: u32) -> Self {
        let oracle = super::Oracle::load();
        let name = table::OBJECTS[object];
        let truth: Vec<_> =
            table::ATTRIBUTES.iter().map(|attribute| oracle.has(name, attribute)).collect();
        Self { object, known: vec![None; truth.len()], truth, left: questions, ended: false }
    }

    /// What the agent is told first.
    #[must_use]
    pub fn request(&self) -> String {
        format!("i think of a thing facts {} left {}", table::facts(&self.known), self.left)
    }

    /// One question.
    ///
    /// # Errors
    /// A question after the end.
    pub fn turn(&mut self, reply: &str) -> Result<Step, EnvError> {
        if self.ended {
            return Err(EnvError::Ended);
        }
        self.left -= 1;
        let question = parse(reply);
        let asks = |word: &&str| question.as_deref() == Some(table::question(word).as_str());
        let attribute = table::ATTRIBUTES.iter().position(asks);
        let guess = table::OBJECTS.iter().position(asks);
        if let Some(attribute) = attribute {
            self.known[attribute] = Some(self.truth[attribute]);
        }
        let said = match attribute {
            None => "what",
            Some(attribute) if self.truth[attribute] => "yes",
            Some(_) => "no",
        };
        let success = guess == Some(self.object);
        self.ended = guess.is_some() || self.left == 0;
        let observation = if success {
            "done solved".to_owned()
        } else if guess.is_some() {
            format!("refused {}", self.reason())
        } else if self.ended {
            format!("{said} closed {}", self.reason())
        } else {
            format!("{said} facts {} left {}", table::facts(&self.known), self.left)
        };
        let end =
            if self.ended { End::Terminated { success: Some(success) } } else { End::Continues };
        Ok(Step::of(observation, f64::from(u8::from(success)), end))
    }

    /// Why the game was lost.
    fn reason(&self) -> String {
        self.known.iter().position(Option::is_none).map_or_else(
            || format!("it was {}", table::OBJECTS[self.object]),
            |attribute| format!("{} is unknown", table::ATTRIBUTES[attribute]),
        )
    }
}

#[async_trait]
impl Session for Game {
    fn task(&self) -> &str {
        table::OBJECTS[self.object]
    }

    fn opening(&self) -> Context {
        Context::of(vec![Message::user(self.request())])
    }

    async fn step(&mut self, read: &Read) -> Result<Step, EnvError> {
        self.turn(read.as_ref().map_or("", |action| action.key.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Game, table};
    use crate::env::Reward;

    #[test]
    fn five_answers_tell_the_object() {
        let mut seen = std::collections::BTreeSet::new();
        for object in 0..table::OBJECTS.len() {
            let mut game = Game::new(object, 7);
            for attribute in table::ATTRIBUTES {
                let step = game.turn(&table::question(attribute));
                assert_eq!(step.map(|s| s.end).ok(), Some(End::Continues));
            }
            assert!(seen.insert(table::facts(&game.known)), "{}", table::OBJECTS[object]);
            let step = game.turn(&table::question(table::OBJECTS[object]));
            let step = step.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(step.end, End::Terminated { success: Some(true) });
            assert_eq!(step.messages[0].written(), "done solved");
            assert_eq!(step.reward, Reward::Known(1.0));
            assert!(game.turn("is it dog ?").is_err());
        }
    }

    #[test]
    fn a_lost_game_tells_what_was_not_asked() {
        let said = |questions: &[&str]| {
            let mut game = Game::new(7, u32::try_from(questions.len()).unwrap_or_default());
            let steps: Vec<_> = questions.iter().map(|q| game.turn(q)).collect();
            steps
                .into_iter()
                .map(|s| s.map_or(String::new(), |s| s.messages[0].written().into_owned()))
                .collect::<Vec<_>>()
        };
        let asked = ["is it flies ?", "nonsense", "is it legs ?"];
        let expected = [
            "yes facts flies yes left 2",
            "what facts flies yes left 1",
            "yes closed water is unknown",
        ];
        assert_eq!(said(&asked), expected);
        assert_eq!(said(&["is it flies ?", "is it dog ?"])[1], "refused legs is unknown");
        let all: Vec<_> = table::ATTRIBUTES.iter().map(|a| table::question(a)).collect();
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        assert_eq!(said(&all)[4], "yes closed it was eagle");
    }
}
