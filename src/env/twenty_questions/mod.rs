//! Twenty Questions: the agent asks yes/no questions to find a hidden object. The oracle is a table of
//! objects and attributes and a few rules for reading questions; what it cannot read it says so.

mod oracle;
pub(super) mod small;

use async_trait::async_trait;
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::oracle::{Answer, Oracle};
use super::{EnvError, Environment, Outcome, Session, Split, Step, split_seed};
use crate::domain::{message::Message, spec::ObjectTable};

/// The game. One object in five of the full table is held out from training; the small table's held-out
/// games are new draws of the same objects.
pub struct TwentyQuestions {
    oracle: Oracle,
    max_questions: u32,
    table: ObjectTable,
}

impl TwentyQuestions {
    /// A game over a table that is lost after `max_questions` questions.
    #[must_use]
    pub fn new(max_questions: u32, table: ObjectTable) -> Self {
        Self { oracle: Oracle::load(), max_questions, table }
    }
}

/// The objects of a split: every fifth is held out.
fn objects(oracle: &Oracle, split: Split) -> Vec<String> {
    oracle
        .objects()
        .enumerate()
        .filter(|(i, _)| (i % 5 == 4) == (split == Split::HeldOut))
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[async_trait]
impl Environment for TwentyQuestions {
    fn name(&self) -> &'static str {
        "twenty_questions"
    }

    fn parse_action(&self, reply: &str) -> Option<String> {
        match self.table {
            ObjectTable::Full => oracle::normalise(reply),
            ObjectTable::Small => small::parse(reply),
        }
    }

    async fn reset(&self, split: Split, seed: i64) -> Result<Box<dyn Session>, EnvError> {
        let mut rng = ChaCha8Rng::seed_from_u64(split_seed(split, seed));
        if self.table == ObjectTable::Small {
            let object = rng.random_range(0..small::table::OBJECTS.len());
            return Ok(Box::new(small::Game::new(object, self.max_questions)));
        }
        let names = objects(&self.oracle, split);
        let object = names[rng.random_range(0..names.len())].clone();
        Ok(Box::new(Game {
            oracle: self.oracle.clone(),
            object,
            left: self.max_questions,
            asked: self.max_questions,
            ended: false,
        }))
    }
}

struct Game {
    oracle: Oracle,
    object: String,
    asked: u32,
    left: u32,
    ended: bool,
}

#[async_trait]
impl Session for Game {
    fn task(&self) -> &str {
        &self.object
    }

    fn opening(&self) -> Vec<Message> {
        vec![Message::user(format!(
            "I am thinking of an object. Find out what it is by asking up to {} questions that can be \
             answered with yes or no, one question per message. To guess, ask for the object by its \
             name, for example: Is it a dog?",
            self.asked
        ))]
    }

    async fn step(&mut self, reply: &str) -> Result<Step, EnvError> {
        if self.ended {
            return Err(EnvError::Ended);
        }
        self.left -= 1;
        let answer = self.oracle.answer(&self.object, reply);
        let success = answer == Answer::Found;
        self.ended = success || self.left == 0;
        let said = match answer {
            Answer::Found => "Yes, that is it. You have won.",
            Answer::Yes => "Yes.",
            Answer::No => "No.",
            Answer::Unclear => "I do not know what you mean. Ask a short yes/no question.",
        };
        let observation = if self.ended && !success {
            format!("{said} That was the last question. It was: {}.", self.object)
        } else if success {
            said.to_owned()
        } else {
            format!("{said} Questions left: {}.", self.left)
        };
        let outcome = if self.ended { Outcome::Terminated { success } } else { Outcome::Continues };
        Ok(Step { observation, reward: f64::from(u8::from(success)), outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::{Environment, ObjectTable, Oracle, Outcome, Split, TwentyQuestions, objects};

    #[test]
    fn held_out_objects_are_not_trained_on() {
        let oracle = Oracle::load();
        let train = objects(&oracle, Split::Train);
        let held_out = objects(&oracle, Split::HeldOut);
        assert_eq!(train.len() + held_out.len(), oracle.objects().count());
        assert!(held_out.len() >= 15);
        assert!(held_out.iter().all(|name| !train.contains(name)));
    }

    #[tokio::test]
    async fn a_right_guess_wins_and_the_last_question_loses() {
        let game = TwentyQuestions::new(3, ObjectTable::Full);
        let reset =
            || async { game.reset(Split::Train, 1).await.unwrap_or_else(|e| panic!("{e}")) };
        let mut session = reset().await;
        let name = session.task().to_owned();
        let step = session.step(&format!("Is it a {name}?")).await;
        let step = step.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(step.outcome, Outcome::Terminated { success: true });
        assert_eq!(step.reward.to_bits(), 1.0_f64.to_bits());
        assert!(session.step("Is it a dog?").await.is_err());

        let mut session = reset().await;
        for left in (0..3).rev() {
            let step = session.step("Is it a unicorn?").await.unwrap_or_else(|e| panic!("{e}"));
            let ended = step.outcome == Outcome::Terminated { success: false };
            assert_eq!(ended, left == 0);
        }
    }
}
