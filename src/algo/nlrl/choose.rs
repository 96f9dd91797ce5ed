//! The policy's improvement: several actions are sampled in a state, each gets a language value, and the chooser names the
//! best by the values alone. The policy learns that action as it wrote it. A choice that nobody can read teaches nothing.

use futures_util::future::try_join_all;

use super::{Setting, policy_example};
use crate::{
    algo::{Annotations, Replayed, nlac::successor},
    domain::{
        annotation::{Choice, PredictionUse},
        fault::Fault,
        generation::{FinishReason, Generation, Role, Weights},
        ids::{ChoiceId, PredictionId},
        spec::SamplingSpec,
    },
    experience::message::Message,
    rollout::Prompt,
};

/// An action that was sampled.
struct Candidate {
    key: String,
    action: Message,
    /// End-of-text included.
    tokens: Vec<i32>,
    /// How often it was sampled.
    times: usize,
}

/// A candidate with its language value.
struct Valued {
    candidate: Candidate,
    prediction_id: PredictionId,
    text: String,
}

/// Chooses an action for the state of a step. A state in which all samples are the same action has nothing to choose: the
/// policy learns that action, and no value is asked for.
pub(super) async fn improve(setting: &Setting<'_>, step: &Replayed) -> Result<Annotations, Fault> {
    let mut made = Annotations::default();
    let replies = sample(setting, step).await?;
    let candidates = candidates(setting, step, &replies);
    made.generations.extend(replies);
    if let [only] = candidates.as_slice() {
        made.examples.push(policy_example(setting, step, only.tokens.clone())?);
        return Ok(made);
    }
    let valued = valued(setting, step, candidates, &mut made).await?;
    if valued.is_empty() {
        return Ok(made);
    }
    let said = ask(setting, step, &valued).await?;
    let number = match said.finish_reason {
        FinishReason::Stop => setting.sampler.prompts.choice(&said.text, valued.len()),
        FinishReason::Length => None,
    };
    let chosen = number.and_then(|number| valued.get(number - 1)).map(|valued| &valued.candidate);
    let before = setting.key(&step.action, &step.state);
    made.choices.push(Choice {
        id: ChoiceId::new(),
        transition_id: step.transition.id,
        prediction_ids: valued.iter().map(|valued| valued.prediction_id).collect(),
        generation_id: said.id,
        action: chosen.map(|chosen| chosen.action.written().into_owned()),
        changed: chosen.is_some_and(|chosen| before.as_ref() != Some(&chosen.key)),
    });
    made.generations.push(said);
    if let Some(chosen) = chosen {
        made.examples.push(policy_example(setting, step, chosen.tokens.clone())?);
    }
    Ok(made)
}

/// a1..aN ~ policy(s), by the weights that act.
async fn sample(setting: &Setting<'_>, step: &Replayed) -> Result<Vec<Generation>, Fault> {
    let rollout = setting.rollout;
    let sampling =
        SamplingSpec { temperature: rollout.temperature, max_tokens: rollout.max_tokens };
    try_join_all((0..setting.spec.candidates).map(|ordinal| {
        let seed = setting.seed_of(step, "candidate").index(ordinal.into());
        setting.sampler.act(&step.state, Weights::Online, sampling, seed)
    }))
    .await
}

/// The actions that replies are, each once, the most frequent first. What nobody can read is none.
fn candidates(setting: &Setting<'_>, step: &Replayed, replies: &[Generation]) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for reply in replies {
        let Ok(action) = setting.read(reply, &step.state) else { continue };
        match candidates.iter_mut().find(|candidate| candidate.key == action.key) {
            Some(candidate) => candidate.times += 1,
            None => candidates.push(Candidate {
                key: action.key,
                action: action.message,
                tokens: reply.token_ids.clone(),
                times: 1,
            }),
        }
    }
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.times));
    candidates
}

/// The language value of each candidate. One whose value the token limit cut is left out: nothing says how it ends.
async fn valued(
    setting: &Setting<'_>,
    step: &Replayed,
    candidates: Vec<Candidate>,
    made: &mut Annotations,
) -> Result<Vec<Valued>, Fault> {
    let texts = try_join_all((0..).zip(&candidates).map(|(ordinal, candidate)| {
        let seed = setting.seed_of(step, "value").index(ordinal);
        let (asked, weights) = ((&step.state, &candidate.action), setting.spec.weights.value);
        successor::predict(setting, asked, weights, setting.spec.sampling.value, seed, 1)
    }))
    .await?;
    let mut valued = Vec::new();
    for ((round, candidate), text) in (0..).zip(candidates).zip(texts.into_iter().flatten()) {
        let (of, purpose) = (step.transition.id, PredictionUse::Critique);
        let row = successor::prediction(of, purpose, round, 0, &candidate.action, &text);
        if text.finish_reason == FinishReason::Stop {
            valued.push(Valued { candidate, prediction_id: row.id, text: text.text.clone() });
        }
        made.predictions.push(row);
        made.generations.push(text);
    }
    Ok(valued)
}

/// i ~ chooser(s, v1..vN).
async fn ask(
    setting: &Setting<'_>,
    step: &Replayed,
    valued: &[Valued],
) -> Result<Generation, Fault> {
    let prompts = setting.sampler.prompts;
    let missing = || Fault::Fail(format!("prompt set {} has no chooser.md", prompts.name()));
    let template = prompts.chooser().ok_or_else(missing)?;
    let values: Vec<_> = valued.iter().map(|valued| valued.text.as_str()).collect();
    let variables = serde_json::json!({ "values": values });
    // The chooser sees no action, whatever its template's context is: it decides by the values.
    let context = template.render(&step.state, None, &variables).map_err(Fault::fail)?;
    let prompt = Prompt {
        role: Role::Chooser,
        template,
        context: &context,
        weights: setting.spec.weights.chooser,
        sampling: setting.spec.sampling.chooser,
        seed: setting.seed_of(step, "choose"),
    };
    setting.sampler.sample(prompt).await
}
