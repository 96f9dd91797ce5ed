//! Playground-Text, the world of SAC-GLAM: goals in a world of plants and animals, with admissible actions.

use std::sync::Arc;

use async_trait::async_trait;
use nlac_playground::{Game, Goal, Settings, Split as Goals, Tasks, Vocabulary};

use super::{
    End, EnvError, Environment, NotBuilt, Reward, Session, Split, Step, Task, split_seed,
    unknown_task,
};
use crate::{
    domain::{
        environment::Capabilities,
        spec::{PlaygroundSize, ToolFormat},
    },
    experience::{
        action::{Codec, Read},
        codec::Admissible,
        context::Context,
        message::{Message, Speaker},
    },
};

/// What a message that says the goal begins with, in any case. The goal is the rest of its first line.
const GOAL: &str = "Goal: ";

/// A message of the world with another goal; none for one that says none.
fn with_goal(message: &Message, goal: &str) -> Option<Message> {
    let text = (message.role == Speaker::User).then(|| message.written())?;
    let (first, rest) = text.split_once('\n')?;
    let label = first.get(..GOAL.len()).filter(|label| label.eq_ignore_ascii_case(GOAL))?;
    Some(Message::user(format!("{label}{goal}\n{rest}")))
}

/// The goal space. One goal in five of each kind is held out, in a tiny world one in four.
pub struct Playground {
    size: PlaygroundSize,
    tasks: Tasks,
}

impl Playground {
    /// What it can do.
    pub const CAPABILITIES: Capabilities = Capabilities {
        replayable: true,
        admissible: true,
        achieved_goals: true,
        splits: true,
        ..Capabilities::NONE
    };

    /// A goal space of a size.
    ///
    /// # Errors
    /// Settings under which a kind of goal has nothing to draw.
    pub fn new(size: PlaygroundSize) -> Result<Self, NotBuilt> {
        let (vocabulary, settings) = match size {
            PlaygroundSize::Full => (Vocabulary::default(), Settings::default()),
            PlaygroundSize::Small => (Vocabulary::small(), Settings::small()),
            PlaygroundSize::Tiny => (Vocabulary::tiny(), Settings::tiny()),
        };
        let tasks = Tasks::new(vocabulary, settings);
        Ok(Self { size, tasks: tasks.map_err(|e| NotBuilt::Unreadable(e.to_string()))? })
    }
}

const fn goals(split: Split) -> Goals {
    match split {
        Split::Train => Goals::Train,
        Split::HeldOut => Goals::HeldOut,
    }
}

#[async_trait]
impl Environment for Playground {
    fn name(&self) -> &'static str {
        "playground"
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn codec(&self, _format: ToolFormat) -> Arc<dyn Codec> {
        Arc::new(Admissible)
    }

    async fn tasks(&self, split: Split) -> Result<Vec<String>, EnvError> {
        Ok(self.tasks.goals(goals(split)).map(ToString::to_string).collect())
    }

    fn aimed(&self, state: &Context, goal: &str) -> Option<Context> {
        let mut said_goal = false;
        let aim = |message: &Message| match with_goal(message, goal) {
            Some(aimed) => {
                said_goal = true;
                aimed
            }
            None => message.clone(),
        };
        let messages = state.messages().iter().map(aim).collect();
        let aimed = Context::new(messages, state.frame().clone());
        said_goal.then(|| aimed.admitting(state.admissible().to_vec()))
    }

    fn trains_on(&self, goal: &str) -> bool {
        let goal = Goal::parse(goal, self.tasks.vocabulary());
        goal.is_ok_and(|goal| self.tasks.split_of(&goal) == Some(Goals::Train))
    }

    async fn open(&self, task: &Task, seed: i64) -> Result<Box<dyn Session>, EnvError> {
        let goal = match task {
            Task::Drawn(split) => {
                self.tasks.draw(goals(*split), split_seed(*split, seed)).goal().clone()
            }
            Task::Named(name) => Goal::parse(name, self.tasks.vocabulary())
                .map_err(|_| unknown_task(self.name(), name))?,
        };
        // The scene follows from goal and seed alone, so that a named goal finds the scene of the drawn one.
        let game = self.tasks.game(goal, seed.cast_unsigned());
        let game = game.map_err(|e| unknown_task(self.name(), &e.goal.to_string()))?;
        Ok(Box::new(Play { size: self.size, goal: game.goal().to_string(), game }))
    }
}

struct Play {
    size: PlaygroundSize,
    goal: String,
    game: Game,
}

impl Play {
    /// What the agent sees and can do.
    fn view(&self) -> String {
        let world = self.game.world();
        if self.size == PlaygroundSize::Tiny {
            return self.game.line();
        }
        format!("{}\nPossible actions: {}", world.observation(), world.admissible().join(", "))
    }
}

#[async_trait]
impl Session for Play {
    fn task(&self) -> &str {
        &self.goal
    }

    fn opening(&self) -> Context {
        let text = match self.size {
            // Each of its messages says the goal.
            PlaygroundSize::Tiny => self.view(),
            PlaygroundSize::Full | PlaygroundSize::Small => format!(
                "{GOAL}{}\n{}\nAnswer with one of the possible actions, as it is written there, and nothing else.",
                self.goal,
                self.view()
            ),
        };
        Context::of(vec![Message::user(text)]).admitting(self.game.world().admissible())
    }

    async fn step(&mut self, read: &Read) -> Result<Step, EnvError> {
        // A reply that is no action takes a step, too.
        let action = read.as_ref().map_or("", |action| action.key.as_str());
        let turn = self.game.step(action).map_err(|_| EnvError::Ended)?;
        let not_possible = if turn.outcome.is_err() && self.size != PlaygroundSize::Tiny {
            "That is not possible.\n"
        } else {
            ""
        };
        let end = match turn.end {
            nlac_playground::End::Continues => End::Continues,
            nlac_playground::End::Solved => End::Terminated { success: Some(true) },
            // What a state is worth must not depend on a clock that nobody sees.
            nlac_playground::End::OutOfSteps => {
                End::Truncated { why: "the goal was not reached in time".into() }
            }
        };
        Ok(Step {
            messages: vec![Message::user(format!("{not_possible}{}", self.view()))],
            reward: Reward::Known(turn.reward),
            end,
            admissible: self.game.world().admissible(),
            achieved_goals: turn.achieved().iter().map(ToString::to_string).collect(),
        })
    }
}
