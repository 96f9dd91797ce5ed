//! The lines of the tiny Playground.

use std::sync::LazyLock;

use nlac::experience::message::Message;
use nlac_playground::{End, Settings, Split, Tasks, Vocabulary};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::{Moves, Taught, World};

/// The goal space, laid out once.
static TASKS: LazyLock<Option<Tasks>> =
    LazyLock::new(|| Tasks::new(Vocabulary::tiny(), Settings::tiny()).ok());

/// The tiny Playground. Its base takes every possible action equally often, whatever the goal is.
pub struct Playground;

impl World for Playground {
    fn prompts(&self) -> &'static str {
        "playground"
    }

    fn words(&self) -> Vec<&'static str> {
        vec![
            "goal:",
            "see:",
            "on:",
            "inventory:",
            "action:",
            "Grasp",
            "Grow",
            "Go",
            "to",
            "Release",
            "seed",
            "baby",
            "water",
            "carrot",
            "potato",
            "berry",
            "cow",
            "sheep",
            "rabbit",
            "chair",
            "table",
        ]
    }

    fn taught(&self) -> Taught<'_> {
        Taught::PolicyAlone(self)
    }
}

impl Moves for Playground {
    /// In one of the goals that are trained on.
    fn state_and_action(&self, rng: &mut ChaCha8Rng) -> (Vec<Message>, String) {
        let Some(tasks) = &*TASKS else { return (Vec::new(), String::new()) };
        let mut game = tasks.draw(Split::Train, rng.random());
        for _ in 0..rng.random_range(0..Settings::tiny().longest_horizon) {
            let mut next = game.clone();
            let possible = next.world().admissible();
            let stepped = possible.choose(rng).map(|action| next.step(action));
            if !matches!(stepped, Some(Ok(turn)) if turn.end == End::Continues) {
                break;
            }
            game = next;
        }
        let action = game.world().admissible().choose(rng).cloned().unwrap_or_default();
        (vec![Message::user(game.line())], action)
    }
}
