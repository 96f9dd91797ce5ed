//! Rehearsal against forgetting: the model keeps learning what the base model says to general prompts.
//! Sampled at temperature 1, that is KL(base ‖ model) on those prompts up to a constant.

use futures_util::future::try_join_all;
use rand::Rng;

use super::Annotations;
use crate::{
    domain::{
        fault::Fault,
        generation::{FinishReason, Generation, Role, Weights},
        ids::ExampleId,
        seed::SeedPath,
        spec::{RehearsalSpec, SamplingSpec},
        training::{ExampleSource, Objective, TrainingExample},
    },
    rollout::{Cast, Line},
};

/// `count` examples on general prompts drawn at random. An answer that was cut teaches nothing.
///
/// # Errors
/// The first fault of the engine, or of a prompt.
pub async fn examples(
    cast: &Cast<'_>,
    spec: &RehearsalSpec,
    count: usize,
    seed: &SeedPath,
) -> Result<Annotations, Fault> {
    let general = cast.prompts.general();
    if general.is_empty() {
        let name = cast.prompts.name();
        return Err(Fault::Fail(format!("prompt set {name} has no general prompts")));
    }
    let mut rng = seed.rng();
    let drawn: Vec<_> = (0..count).map(|_| &general[rng.random_range(0..general.len())]).collect();
    let sampling = SamplingSpec { temperature: 1.0, max_tokens: spec.max_tokens };
    let answered = try_join_all((0..).zip(&drawn).map(|(i, messages)| {
        cast.speak(Line {
            role: Role::Policy,
            template: cast.prompts.policy(),
            messages,
            weights: Weights::Base,
            sampling,
            seed: seed.index(i),
        })
    }))
    .await?;
    let mut made = Annotations::default();
    let whole = |answer: &&Generation| answer.finish_reason == FinishReason::Stop;
    for (messages, answer) in drawn.iter().zip(&answered).filter(|(_, answer)| whole(answer)) {
        let prompt = cast.encoder.encode(messages).map_err(Fault::fail)?;
        made.examples.push(TrainingExample {
            id: ExampleId::new(),
            ordinal: 0,
            transition_id: None,
            objective: Objective::Rehearsal,
            source: ExampleSource::Base,
            prompt_hash: cast.prompts.general_hash().to_owned(),
            prompt_tokens: prompt.into_iter().map(u32::cast_signed).collect(),
            completion_tokens: answer.token_ids.clone(),
            weight: spec.weight,
            loss: None,
        });
    }
    made.generations = answered;
    Ok(made)
}
