//! The language Bellman backup: d* = what really came next, joined with the target model's own
//! prediction from there on. At a terminal transition the ending is all there is: nothing is
//! bootstrapped.

use super::{Setting, successor};
use crate::{
    algo::Replayed,
    domain::{
        annotation::{Prediction, PredictionUse, Target, TargetStatus},
        fault::Fault,
        generation::{FinishReason, Generation, Role},
        ids::TargetId,
    },
    rollout::Line,
};

/// A target and what was generated for it; d* is the last generation.
pub(super) struct Made {
    pub(super) target: Target,
    pub(super) prediction: Option<Prediction>,
    pub(super) generations: Vec<Generation>,
}

impl Made {
    /// d*.
    pub(super) fn d_star(&self) -> &Generation {
        &self.generations[self.generations.len() - 1]
    }
}

/// Makes d* for a transition. `truncated` transitions bootstrap like any other: their future exists,
/// it was only not seen.
pub(super) async fn bellman_target(
    setting: &Setting<'_>,
    replayed: &Replayed,
) -> Result<Made, Fault> {
    let mut generations = Vec::with_capacity(3);
    let mut next_action = None;
    let mut prediction = None;
    if !replayed.transition.done {
        let action = act(setting, replayed).await?;
        let future = successor::predict(
            setting,
            replayed.next_state(),
            &action.text,
            setting.spec.weights.next_prediction,
            setting.spec.sampling.next_prediction,
            setting.seed_of(replayed, "next_prediction"),
        )
        .await?;
        prediction = Some(successor::prediction(
            replayed.transition.id,
            PredictionUse::Bootstrap,
            0,
            0,
            &action.text,
            &future,
        ));
        next_action = Some(action.id);
        generations.extend([action, future]);
    }
    let d_star = back_up(setting, replayed, prediction.as_ref()).await?;
    let status = match d_star.finish_reason {
        FinishReason::Length => TargetStatus::Unparseable,
        FinishReason::Stop => {
            setting.cast.prompts.target_status(&d_star.text, &replayed.transition.observation)
        }
    };
    let target = Target {
        id: TargetId::new(),
        transition_id: replayed.transition.id,
        next_action_generation_id: next_action,
        next_prediction_id: prediction.as_ref().map(|p| p.id),
        generation_id: d_star.id,
        text: d_star.text.clone(),
        status,
    };
    generations.push(d_star);
    Ok(Made { target, prediction, generations })
}

/// a' ~ π(· | s'): sampled anew, because the stored next action belongs to an older policy.
async fn act(setting: &Setting<'_>, replayed: &Replayed) -> Result<Generation, Fault> {
    let template = setting.cast.prompts.policy();
    let messages = template
        .render(replayed.next_state(), None, &serde_json::json!({}))
        .map_err(Fault::fail)?;
    setting
        .cast
        .speak(Line {
            role: Role::Policy,
            template,
            messages: &messages,
            weights: setting.spec.weights.next_action,
            sampling: setting.spec.sampling.next_action,
            seed: setting.seed_of(replayed, "next_action"),
        })
        .await
}

/// d* ~ B(s, a, r, s', d').
async fn back_up(
    setting: &Setting<'_>,
    replayed: &Replayed,
    prediction: Option<&Prediction>,
) -> Result<Generation, Fault> {
    let transition = &replayed.transition;
    let mut variables = serde_json::json!({
        "observation": transition.observation,
        "reward": transition.reward.map_or_else(|| "unknown".to_owned(), |r| r.to_string()),
    });
    let template = match prediction {
        Some(prediction) => {
            variables["prediction"] = prediction.text.as_str().into();
            setting.cast.prompts.bellman()
        }
        None => setting.cast.prompts.bellman_terminal(),
    };
    let messages = template
        .render(replayed.state(), Some(&transition.action), &variables)
        .map_err(Fault::fail)?;
    setting
        .cast
        .speak(Line {
            role: Role::Bellman,
            template,
            messages: &messages,
            weights: setting.spec.weights.bellman,
            sampling: setting.spec.sampling.bellman,
            seed: setting.seed_of(replayed, "bellman"),
        })
        .await
}
