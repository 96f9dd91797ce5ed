//! The language successor model M: reads (state, action) and writes what will happen, to the end.

use super::Setting;
use crate::domain::{
    annotation::{Prediction, PredictionUse},
    fault::Fault,
    generation::{Generation, Role, Weights},
    ids::{PredictionId, TransitionId},
    message::Message,
    seed::SeedPath,
    spec::SamplingSpec,
};
use crate::rollout::Line;

/// P_succ(s, a).
pub(super) fn prompt(
    setting: &Setting<'_>,
    state: &[Message],
    action: &str,
) -> Result<Vec<Message>, Fault> {
    setting
        .cast
        .prompts
        .successor()
        .render(state, Some(action), &serde_json::json!({}))
        .map_err(Fault::fail)
}

/// d1..dk ~ M(· | state, action), by one set of weights.
pub(super) async fn predict(
    setting: &Setting<'_>,
    (state, action): (&[Message], &str),
    weights: Weights,
    sampling: SamplingSpec,
    seed: SeedPath,
    futures: u32,
) -> Result<Vec<Generation>, Fault> {
    let messages = prompt(setting, state, action)?;
    let template = setting.cast.prompts.successor();
    let role = Role::Successor;
    let line = Line { role, template, messages: &messages, weights, sampling, seed };
    setting.cast.samples(line, futures).await
}

/// The row of a prediction.
pub(super) fn prediction(
    transition_id: TransitionId,
    purpose: PredictionUse,
    round: i32,
    ordinal: i32,
    action: &str,
    generation: &Generation,
) -> Prediction {
    Prediction {
        id: PredictionId::new(),
        transition_id,
        purpose,
        round,
        ordinal,
        action: action.to_owned(),
        generation_id: generation.id,
        text: generation.text.clone(),
    }
}
