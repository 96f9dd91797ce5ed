//! The refinement policy: rewrites an action by its critique. It is the policy's teacher; what it
//! writes is never executed.

use super::Setting;
use crate::{
    algo::{Replayed, message_of},
    domain::{
        annotation::{Critique, Refinement},
        fault::Fault,
        generation::{Generation, Role},
        ids::RefinementId,
    },
    experience::message::Message,
    rollout::Prompt,
};

/// A refinement and the generation that it is.
pub(super) struct Refined {
    pub(super) refinement: Refinement,
    /// x', where it is an action.
    pub(super) action: Message,
    pub(super) generation: Generation,
}

/// x' ~ π_r(· | s, x, q).
pub(super) async fn rewrite(
    setting: &Setting<'_>,
    replayed: &Replayed,
    action: &Message,
    critique: &Critique,
    round: u32,
) -> Result<Refined, Fault> {
    let template = setting.sampler.prompts.refiner();
    let variables = serde_json::json!({ "critique": critique.text });
    let quoted = setting.quoted(action);
    let context =
        template.render(&replayed.state, Some(&quoted), &variables).map_err(Fault::fail)?;
    let prompt = Prompt {
        role: Role::Refiner,
        template,
        context: &context,
        weights: setting.spec.weights.refiner,
        sampling: setting.spec.sampling.refiner,
        seed: setting.seed_of(replayed, "refine").index(u64::from(round)),
    };
    let generation = setting.sampler.sample(prompt).await?;
    let before = setting.key(action, &replayed.state);
    let read = setting.read(&generation, &replayed.state);
    let after = read.as_ref().ok().map(|action| action.key.clone());
    let refinement = Refinement {
        id: RefinementId::new(),
        transition_id: replayed.transition.id,
        round: i32::try_from(round).map_err(Fault::fail)?,
        critique_id: critique.id,
        generation_id: generation.id,
        action: generation.said().unwrap_or_default().to_owned(),
        valid: after.is_some(),
        changed: after.is_some() && after != before,
        rationale: None,
    };
    Ok(Refined { refinement, action: message_of(read), generation })
}
