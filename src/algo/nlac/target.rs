//! The language Bellman backup: d* = what really came next, joined with the target model's own
//! prediction from there on. At a terminal transition the ending is all there is: nothing is
//! bootstrapped.

use super::{Setting, corrector, successor};
use crate::{
    algo::Replayed,
    domain::{
        annotation::{Prediction, PredictionUse, Target, TargetStatus},
        fault::Fault,
        generation::{FinishReason, Generation, Role},
        ids::TargetId,
        message::Message,
        seed::SeedPath,
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
        // a' is sampled anew, because the stored next action belongs to an older policy.
        let (weights, sampling) =
            (setting.spec.weights.next_action, setting.spec.sampling.next_action);
        let seed = setting.seed_of(replayed, "next_action");
        let action = setting.cast.act(replayed.next_state(), weights, sampling, seed).await?;
        let futures = successor::predict(
            setting,
            (replayed.next_state(), &action.text),
            setting.spec.weights.next_prediction,
            setting.spec.sampling.next_prediction,
            setting.seed_of(replayed, "next_prediction"),
            1,
        )
        .await?;
        prediction = futures.first().map(|future| {
            successor::prediction(
                replayed.transition.id,
                PredictionUse::Bootstrap,
                0,
                0,
                &action.text,
                future,
            )
        });
        next_action = Some(action.id);
        generations.push(action);
        generations.extend(futures);
    }
    let transition = &replayed.transition;
    let happened = Happened {
        state: replayed.state(),
        action: &transition.action,
        observation: &transition.observation,
        reward: transition.reward,
    };
    let rest = prediction.as_ref().map(|p| p.text.as_str());
    let joined = join(setting, &happened, rest, setting.seed_of(replayed, "bellman")).await?;
    generations.push(joined);
    let mut status = status(setting, replayed, &generations[generations.len() - 1]);
    if setting.spec.correct_reasoning && status == TargetStatus::Accepted {
        let draft = generations[generations.len() - 1].text.clone();
        let corrected = corrector::correct(setting, replayed, &draft).await?;
        status = corrected.status;
        generations.extend(corrected.generations);
    }
    let d_star = &generations[generations.len() - 1];
    let target = Target {
        id: TargetId::new(),
        transition_id: transition.id,
        next_action_generation_id: next_action,
        next_prediction_id: prediction.as_ref().map(|p| p.id),
        generation_id: d_star.id,
        text: d_star.text.clone(),
        status,
    };
    Ok(Made { target, prediction, generations })
}

/// Whether a text may be a target.
pub(super) fn status(
    setting: &Setting<'_>,
    replayed: &Replayed,
    text: &Generation,
) -> TargetStatus {
    match text.finish_reason {
        FinishReason::Length => TargetStatus::Unparseable,
        FinishReason::Stop => {
            setting.cast.prompts.target_status(&text.text, &replayed.transition.observation)
        }
    }
}

/// A step that was really taken.
pub(super) struct Happened<'a> {
    pub(super) state: &'a [Message],
    pub(super) action: &'a str,
    pub(super) observation: &'a str,
    pub(super) reward: Option<f64>,
}

/// B(s, a, r, s', rest); without a rest the step was the ending.
pub(super) async fn join(
    setting: &Setting<'_>,
    happened: &Happened<'_>,
    rest: Option<&str>,
    seed: SeedPath,
) -> Result<Generation, Fault> {
    let mut variables = serde_json::json!({
        "observation": happened.observation,
        "reward": happened.reward.map_or_else(|| "unknown".to_owned(), |r| r.to_string()),
    });
    let template = match rest {
        Some(rest) => {
            variables["prediction"] = rest.into();
            setting.cast.prompts.bellman()
        }
        None => setting.cast.prompts.bellman_terminal(),
    };
    let messages =
        template.render(happened.state, Some(happened.action), &variables).map_err(Fault::fail)?;
    setting
        .cast
        .speak(Line {
            role: Role::Bellman,
            template,
            messages: &messages,
            weights: setting.spec.weights.bellman,
            sampling: setting.spec.sampling.bellman,
            seed,
        })
        .await
}
