//! The language successor model M: reads (state, action) and writes what will happen, to the end.

use crate::{
    algo::Setting,
    domain::{
        annotation::{Prediction, PredictionUse},
        fault::Fault,
        generation::{Generation, Role, Weights},
        ids::{PredictionId, TransitionId},
        seed::SeedPath,
        spec::SamplingSpec,
    },
    experience::{context::Context, message::Message},
    rollout::Prompt,
};

/// P_succ(s, a).
pub(in crate::algo) fn prompt<S>(
    setting: &Setting<'_, S>,
    state: &Context,
    action: &Message,
) -> Result<Context, Fault> {
    setting
        .sampler
        .prompts
        .successor()
        .render(state, Some(&setting.quoted(action)), &serde_json::json!({}))
        .map_err(Fault::fail)
}

/// d1..dk ~ M(· | state, action), by one set of weights.
pub(in crate::algo) async fn predict<S>(
    setting: &Setting<'_, S>,
    (state, action): (&Context, &Message),
    weights: Weights,
    sampling: SamplingSpec,
    seed: SeedPath,
    futures: u32,
) -> Result<Vec<Generation>, Fault> {
    let context = prompt(setting, state, action)?;
    let template = setting.sampler.prompts.successor();
    let role = Role::Successor;
    let prompt = Prompt { role, template, context: &context, weights, sampling, seed };
    setting.sampler.samples(prompt, futures).await
}

/// Divides texts into predictions and texts whose reasoning did not end.
///
/// # Errors
/// No text is a prediction.
pub(super) fn told(texts: Vec<Generation>) -> Result<(Vec<Generation>, Vec<Generation>), Fault> {
    let (told, endless): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|text| text.said().is_some());
    if told.is_empty() && !endless.is_empty() {
        let why = "the reasoning of every prediction was cut: raise the limits of its tokens";
        return Err(Fault::Refused(why.into()));
    }
    Ok((told, endless))
}

/// The row of a prediction.
pub(in crate::algo) fn prediction(
    transition_id: TransitionId,
    purpose: PredictionUse,
    round: i32,
    ordinal: i32,
    action: &Message,
    generation: &Generation,
) -> Prediction {
    Prediction {
        id: PredictionId::new(),
        transition_id,
        purpose,
        round,
        ordinal,
        action: action.written().into_owned(),
        generation_id: generation.id,
        text: generation.said().unwrap_or_default().to_owned(),
    }
}
