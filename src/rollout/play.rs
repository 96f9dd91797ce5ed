//! The actor's loop: state in, action out, until the episode ends.
//!
//! A failing engine or environment is an outcome of its own: such an episode has no return, and its
//! steps train nothing. An episode that is truncated (by the engine's context, by the job's step cap or deadline, by
//! its environment) keeps its steps: its end is not known, and the last step's future may be bootstrapped.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{
    domain::{
        episode::{EndReason, RewardStatus, TruncatedBy},
        fault::Fault,
        generation::{FinishReason, Generation, Weights},
        message::Message,
        seed::SeedPath,
        spec::{RolloutSpec, SamplingSpec},
    },
    env::{EnvError, Environment, Outcome, Session, Split},
    rollout::Cast,
};

/// Where and how an episode is played.
pub struct Stage<'a> {
    /// Who acts.
    pub cast: &'a Cast<'a>,
    /// Where.
    pub environment: &'a dyn Environment,
    /// Which tasks.
    pub split: Split,
    /// Temperature and limits of the policy.
    pub rollout: &'a RolloutSpec,
    /// Overrides the rollout's temperature.
    pub temperature: f32,
}

/// A step that was taken.
#[derive(Debug, Clone)]
pub struct PlayedStep {
    /// What was said.
    pub reply: String,
    /// The generation that it is; none for an action that a branch was given.
    pub generation: Option<Generation>,
    /// Messages before it.
    pub state_len: usize,
    /// What reached the environment; none if it could not be read.
    pub env_action: Option<String>,
    /// The answer.
    pub observation: String,
    /// The reward.
    pub reward: f64,
    /// The task ended here.
    pub done: bool,
    /// The episode was cut here.
    pub truncated: bool,
}

/// An episode that was played.
#[derive(Debug, Clone)]
pub struct Played {
    /// The task's name.
    pub task: String,
    /// Seed of the environment.
    pub seed: i64,
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// Its steps.
    pub steps: Vec<PlayedStep>,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Sum of rewards, if it came to its end.
    pub episode_return: Option<f64>,
    /// Why there is one or not.
    pub reward_status: RewardStatus,
    /// Solved or not, if it came to its end.
    pub success: Option<bool>,
    /// What truncated it, if anything did.
    pub truncated_by: Option<TruncatedBy>,
    /// What failed.
    pub error: Option<String>,
}

impl Stage<'_> {
    /// When an episode that begins now is truncated.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.rollout.max_seconds.into())
    }
}

/// Plays an episode. `seed` names all its chance: the environment's and every action's.
///
/// # Errors
/// [`Fault::Retry`], [`Fault::Away`] and [`Fault::Cancelled`] of the engine: then the episode was not played. A
/// permanent failure is an episode that failed.
pub async fn play(stage: &Stage<'_>, seed: &SeedPath) -> Result<Played, Fault> {
    let env_seed = seed.label("environment").sampling_seed();
    let mut played = Played::unfinished(env_seed);
    let outcome = act_out(stage, seed, env_seed, &mut played).await;
    played.settle(outcome)
}

impl Played {
    pub(super) const fn unfinished(seed: i64) -> Self {
        Self {
            task: String::new(),
            seed,
            messages: Vec::new(),
            steps: Vec::new(),
            end_reason: EndReason::Failed,
            episode_return: None,
            reward_status: RewardStatus::Failed,
            success: None,
            truncated_by: None,
            error: None,
        }
    }

    /// Cuts it here: the end is not known.
    pub(super) fn truncate(&mut self, by: TruncatedBy) {
        self.end_reason = EndReason::Truncated;
        self.reward_status = RewardStatus::Truncated;
        self.truncated_by = Some(by);
        if let Some(last) = self.steps.last_mut() {
            last.truncated = true;
        }
    }

    /// A failure of the engine that may pass is not an episode; any other is one that failed.
    pub(super) fn settle(mut self, outcome: Result<(), Failure>) -> Result<Self, Fault> {
        match outcome {
            Ok(()) => {}
            Err(Failure::Engine(
                fault @ (Fault::Retry(_) | Fault::Away { .. } | Fault::Cancelled),
            )) => {
                return Err(fault);
            }
            Err(Failure::Engine(
                Fault::Fail(reason) | Fault::Refused(reason) | Fault::TooLong(reason),
            )) => {
                self.error = Some(reason);
            }
            Err(Failure::Environment(error)) => self.error = Some(error.to_string()),
        }
        Ok(self)
    }
}

pub(super) enum Failure {
    Engine(Fault),
    Environment(EnvError),
}

async fn act_out(
    stage: &Stage<'_>,
    seed: &SeedPath,
    env_seed: i64,
    played: &mut Played,
) -> Result<(), Failure> {
    let deadline = stage.deadline();
    let reset = timeout_at(deadline, stage.environment.reset(stage.split, env_seed)).await;
    let Ok(session) = reset else {
        played.truncate(TruncatedBy::Deadline);
        return Ok(());
    };
    let session = session.map_err(Failure::Environment)?;
    session.task().clone_into(&mut played.task);
    played.messages = session.opening();
    Course::new(stage, session, played, deadline, 0).go_on(seed).await
}

/// An episode on its way.
pub(super) struct Course<'a> {
    stage: &'a Stage<'a>,
    session: Box<dyn Session>,
    played: &'a mut Played,
    total: f64,
    deadline: Instant,
    /// Steps of the episode before those that are played here.
    before: usize,
}

impl<'a> Course<'a> {
    pub(super) const fn new(
        stage: &'a Stage<'a>,
        session: Box<dyn Session>,
        played: &'a mut Played,
        deadline: Instant,
        before: usize,
    ) -> Self {
        Self { stage, session, played, total: 0.0, deadline, before }
    }

    /// The policy acts until the episode ends or is truncated. Its actions are numbered by the steps taken here.
    pub(super) async fn go_on(&mut self, seed: &SeedPath) -> Result<(), Failure> {
        loop {
            let number = self.played.steps.len();
            if self.before + number >= self.stage.rollout.max_steps as usize {
                self.played.truncate(TruncatedBy::Steps);
                return Ok(());
            }
            let seed = seed.index(number as u64);
            let sampling = SamplingSpec {
                temperature: self.stage.temperature,
                max_tokens: self.stage.rollout.max_tokens,
            };
            let state = &self.played.messages;
            let acting = self.stage.cast.act(state, Weights::Online, sampling, seed);
            let truncated_by = match timeout_at(self.deadline, acting).await {
                Ok(Ok(generation)) => {
                    let reply = generation.text.clone();
                    if self.take(&reply, Some(generation)).await? {
                        return Ok(());
                    }
                    continue;
                }
                Ok(Err(Fault::TooLong(_))) => TruncatedBy::Context,
                Ok(Err(fault)) => return Err(Failure::Engine(fault)),
                Err(_) => TruncatedBy::Deadline,
            };
            self.played.truncate(truncated_by);
            return Ok(());
        }
    }

    /// One step; true when it was the last.
    pub(super) async fn take(
        &mut self,
        reply: &str,
        generation: Option<Generation>,
    ) -> Result<bool, Failure> {
        // What was cut by the token limit was not said to its end: the environment hears it as it is.
        let readable = generation.as_ref().is_none_or(|g| g.finish_reason == FinishReason::Stop);
        let env_action = self.stage.environment.parse_action(reply).filter(|_| readable);
        let Ok(step) = timeout_at(self.deadline, self.session.step(reply)).await else {
            self.played.truncate(TruncatedBy::Deadline);
            return Ok(true);
        };
        let step = step.map_err(Failure::Environment)?;
        let played = &mut *self.played;
        self.total += step.reward;
        let state_len = played.messages.len();
        played.messages.push(Message::assistant(reply));
        played.messages.push(Message::user(&step.observation));
        played.steps.push(PlayedStep {
            reply: reply.to_owned(),
            generation,
            state_len,
            env_action,
            observation: step.observation,
            reward: step.reward,
            done: matches!(step.outcome, Outcome::Terminated { .. }),
            truncated: step.outcome == Outcome::Truncated,
        });
        match step.outcome {
            Outcome::Continues => return Ok(false),
            Outcome::Terminated { success } => {
                played.end_reason = EndReason::Terminated;
                played.episode_return = Some(self.total);
                played.reward_status = RewardStatus::Observed;
                played.success = Some(success);
            }
            Outcome::Truncated => played.truncate(TruncatedBy::Environment),
        }
        Ok(true)
    }
}
