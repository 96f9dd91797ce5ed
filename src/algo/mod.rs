//! What is asked of which weights, and which training examples come out.
//!
//! Pure over ports: an algorithm gets an engine, a prompt set and stored transitions, and returns
//! records. It opens no socket and no transaction, so every invariant is a fast test with a counting
//! engine, and the same code runs against vLLM.

pub mod guard;
mod left_out;
mod lesson;
pub mod minibatch;
pub mod nlac;
pub mod rehearsal;
pub mod rejection;
pub mod replay;
pub mod scalar;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        annotation::{Critique, Prediction, Refinement, Target},
        episode::{RewardStatus, Transition},
        generation::Generation,
        ids::{EpisodeId, IterationId, JobId, TransitionId},
        message::Message,
        seed::SeedPath,
        spec::RolloutSpec,
        training::TrainingExample,
    },
    env::Environment,
    rollout::Cast,
};

/// Everything derived from a batch; rows to be written together.
#[derive(Debug, Default)]
pub struct Annotations {
    /// Every text generated on the way.
    pub generations: Vec<Generation>,
    /// Futures, for targets and for critiques.
    pub predictions: Vec<Prediction>,
    /// Bellman targets.
    pub targets: Vec<Target>,
    /// Verdicts.
    pub critiques: Vec<Critique>,
    /// Rewritten actions.
    pub refinements: Vec<Refinement>,
    /// What the trainer is to learn from them.
    pub examples: Vec<TrainingExample>,
    /// Environment steps taken on the way.
    pub env_steps: u64,
    /// Transitions of which the engine refused something, with what it said first; they lack it, and what
    /// follows from it.
    pub left_out: BTreeMap<TransitionId, String>,
}

impl Annotations {
    /// The transitions that something was said about, each once.
    #[must_use]
    pub fn annotated(&self) -> Vec<TransitionId> {
        let targets = self.targets.iter().map(|target| target.transition_id);
        let judged = self.critiques.iter().map(|critique| critique.transition_id);
        targets.chain(judged).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// What an algorithm is handed beside the transitions; S are its settings.
pub struct Setting<'a, S> {
    /// Who speaks.
    pub cast: &'a Cast<'a>,
    /// Parses actions; stepped only where real rollouts stand in for predictions.
    pub environment: &'a dyn Environment,
    /// How the policy acts.
    pub rollout: &'a RolloutSpec,
    /// The algorithm's settings.
    pub spec: &'a S,
    /// Number of the iteration, from 1.
    pub iteration: u32,
    /// Root of the iteration's choices.
    pub seed: SeedPath,
}

/// A stored transition with the conversation that it is a step of.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The step.
    pub transition: Transition,
    /// The whole episode's messages.
    pub messages: Vec<Message>,
    /// The action as the engine wrote it, end-of-text included.
    pub action_tokens: Vec<u32>,
    /// The token limit cut the action: it has no end-of-text, and no policy learns it.
    pub action_cut: bool,
    /// Its place in the iteration's batch: names its random choices.
    pub position: u64,
    /// Seed of its episode's environment.
    pub episode_seed: i64,
    /// Weight of its critic loss that makes up for the chance of being drawn, 0 to 1.
    pub importance: f32,
}

impl Replayed {
    /// A transition with its conversation, at a place of a batch; its action is whole, its loss counts in full.
    #[must_use]
    pub fn new(
        transition: Transition,
        messages: Vec<Message>,
        action_tokens: Vec<i32>,
        episode_seed: i64,
        position: u64,
    ) -> Self {
        let action_tokens = action_tokens.into_iter().map(i32::cast_unsigned).collect();
        Self {
            transition,
            messages,
            action_tokens,
            action_cut: false,
            position,
            episode_seed,
            importance: 1.0,
        }
    }

    /// An action in a state that no stored episode went through: what its critic is asked about.
    #[must_use]
    pub fn imagined(job_id: JobId, state: Vec<Message>, action: String) -> Self {
        let transition = Transition {
            id: TransitionId::new(),
            job_id,
            iteration_id: IterationId::new(),
            episode_id: EpisodeId::new(),
            step: 0,
            state_len: i32::try_from(state.len()).unwrap_or(i32::MAX),
            action,
            env_action: None,
            observation: String::new(),
            reward: None,
            reward_status: RewardStatus::Pending,
            done: false,
            truncated: false,
            generation_id: None,
        };
        Self::new(transition, state, Vec::new(), 0, 0)
    }

    /// s: everything said before the action.
    #[must_use]
    pub fn state(&self) -> &[Message] {
        &self.messages[..self.state_len()]
    }

    /// s': the state, the action and what the environment answered.
    #[must_use]
    pub fn next_state(&self) -> &[Message] {
        &self.messages[..(self.state_len() + 2).min(self.messages.len())]
    }

    fn state_len(&self) -> usize {
        usize::try_from(self.transition.state_len).unwrap_or(0).min(self.messages.len())
    }
}
