//! Rejection fine-tuning: imitate one's own successes (algorithms sheet §3.2). The simplest baseline,
//! on the same machinery.

use rand::seq::SliceRandom;

use super::Replayed;
use crate::domain::{
    fault::Fault,
    ids::{ExampleId, TransitionId},
    seed::SeedPath,
    spec::RejectionSpec,
    training::{ExampleSource, Objective, TrainingExample},
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

/// The policy prompt of s, and the action that was taken in it.
///
/// # Errors
/// A prompt that cannot be rendered or encoded.
pub fn examples(
    prompts: &PromptSet,
    encoder: &Encoder,
    batch: &[Replayed],
) -> Result<Vec<TrainingExample>, Fault> {
    batch
        .iter()
        .map(|replayed| {
            let template = prompts.policy();
            let prompt = template
                .render(replayed.state(), None, &serde_json::json!({}))
                .map_err(Fault::fail)?;
            let prompt_tokens = encoder.encode(&prompt).map_err(Fault::fail)?;
            Ok(TrainingExample {
                id: ExampleId::new(),
                ordinal: 0,
                transition_id: Some(replayed.transition.id),
                objective: Objective::Policy,
                source: ExampleSource::Action,
                prompt_hash: template.hash().to_owned(),
                prompt_tokens: prompt_tokens.into_iter().map(u32::cast_signed).collect(),
                completion_tokens: replayed.action_tokens.iter().map(|t| t.cast_signed()).collect(),
                weight: 1.0,
                loss: None,
            })
        })
        .collect()
}
