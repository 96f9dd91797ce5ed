//! The refinement policy: rewrites an action by its critique. It is the policy's teacher; what it
//! writes is never executed.

use super::Setting;
use crate::{
    algo::Replayed,
    domain::{
        annotation::{Critique, Refinement},
        fault::Fault,
        generation::{FinishReason, Generation, Role},
        ids::RefinementId,
    },
    rollout::Line,
};

/// A refinement and the generation that it is.
pub(super) struct Refined {
    pub(super) refinement: Refinement,
    pub(super) generation: Generation,
}

/// x' ~ π_r(· | s, x, q).
pub(super) async fn rewrite(
    setting: &Setting<'_>,
    replayed: &Replayed,
    action: &str,
    critique: &Critique,
    round: u32,
) -> Result<Refined, Fault> {
    let template = setting.cast.prompts.refiner();
    let variables = serde_json::json!({ "critique": critique.text });
    let messages =
        template.render(replayed.state(), Some(action), &variables).map_err(Fault::fail)?;
    let line = Line {
        role: Role::Refiner,
        template,
        messages: &messages,
        weights: setting.spec.weights.refiner,
        sampling: setting.spec.sampling.refiner,
        seed: setting.seed_of(replayed, "refine").index(u64::from(round)),
    };
    let generation = setting.cast.speak(line).await?;
    let before = setting.environment.parse_action(action);
    let after = match generation.finish_reason {
        FinishReason::Stop => setting.environment.parse_action(&generation.text),
        FinishReason::Length => None,
    };
    let refinement = Refinement {
        id: RefinementId::new(),
        transition_id: replayed.transition.id,
        round: i32::try_from(round).map_err(Fault::fail)?,
        critique_id: critique.id,
        generation_id: generation.id,
        action: generation.text.clone(),
        valid: after.is_some(),
        changed: after.is_some() && after != before,
    };
    Ok(Refined { refinement, generation })
}
