//! Another future of a state that an earlier episode went through: its replies are said again, then
//! another action is taken, and the policy goes on from there.

use super::{
    Played, Stage,
    play::{Course, Failure},
};
use crate::{
    domain::{fault::Fault, message::Message, seed::SeedPath},
    env::{EnvError, Outcome, Split},
};

/// A state of an earlier episode.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Where its task was drawn from.
    pub split: Split,
    /// Seed of its environment.
    pub seed: i64,
    /// Its whole conversation.
    pub messages: &'a [Message],
    /// Messages before the action that is replaced.
    pub state_len: usize,
}

/// Plays on from `origin` with `action`. The steps before it are not among the result's.
///
/// # Errors
/// As [`super::play`]. An environment that answers the repeated replies otherwise than it did is an
/// episode that failed.
pub async fn branch(
    stage: &Stage<'_>,
    origin: Origin<'_>,
    action: &str,
    seed: &SeedPath,
) -> Result<Played, Fault> {
    let mut played = Played::unfinished(origin.seed);
    let outcome = act_out(stage, origin, action, seed, &mut played).await;
    played.settle(outcome)
}

async fn act_out(
    stage: &Stage<'_>,
    origin: Origin<'_>,
    action: &str,
    seed: &SeedPath,
    played: &mut Played,
) -> Result<(), Failure> {
    let deadline = stage.deadline();
    let reset = stage.environment.reset(origin.split, origin.seed).await;
    let mut session = reset.map_err(Failure::Environment)?;
    session.task().clone_into(&mut played.task);
    let opening = session.opening();
    let (said, past) = origin
        .messages
        .get(..origin.state_len)
        .and_then(|state| Some((state, state.strip_prefix(opening.as_slice())?)))
        .ok_or(Failure::Environment(EnvError::Diverged))?;
    for turn in past.chunks_exact(2) {
        let step = session.step(&turn[0].content).await.map_err(Failure::Environment)?;
        if step.observation != turn[1].content || step.outcome != Outcome::Continues {
            return Err(Failure::Environment(EnvError::Diverged));
        }
    }
    played.messages = said.to_vec();
    let mut course = Course::new(stage, session, played, deadline, past.len() / 2);
    if course.take(action, None).await? {
        return Ok(());
    }
    course.go_on(seed).await
}
