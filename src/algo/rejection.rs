//! Rejection fine-tuning: imitate one's own successes (algorithms sheet §3.2). The simplest baseline,
//! on the same machinery.

use rand::seq::SliceRandom;

use super::{Replayed, lesson};
use crate::domain::{
    fault::Fault,
    ids::TransitionId,
    seed::SeedPath,
    spec::RejectionSpec,
    training::{ExampleSource, TrainingExample},
};
use crate::prompt::{Encoder, PromptSet};

/// Draws the steps to imitate from those of the newest successful episodes, in their stored order.
#[must_use]
pub fn select(
    successes: &[TransitionId],
    spec: &RejectionSpec,
    seed: &SeedPath,
) -> Vec<TransitionId> {
    let mut drawn = successes.to_vec();
    drawn.shuffle(&mut seed.label("rejection").rng());
    drawn.truncate(spec.batch as usize);
    drawn
}

/// The policy prompt of s, and the action that was taken in it; none for an action that the token limit cut.
///
/// # Errors
/// A prompt that cannot be rendered or encoded.
pub fn examples(
    prompts: &PromptSet,
    encoder: &Encoder,
    batch: &[Replayed],
) -> Result<Vec<TrainingExample>, Fault> {
    let example = |replayed: &Replayed| {
        let action = lesson::signed(&replayed.action_tokens);
        lesson::policy((prompts, encoder), replayed, ExampleSource::Action, action, 1.0)
    };
    batch.iter().filter(|replayed| !replayed.action_cut).map(example).collect()
}
