//! The language evaluator E: reads k predicted futures of an action and says whether it is optimal,
//! why, and what instead.

use super::{Annotations, Setting, real_rollouts, successor};
use crate::{
    algo::Replayed,
    domain::{
        annotation::{Critique, Prediction, PredictionUse, Verdict},
        fault::Fault,
        generation::{Generation, Role},
        ids::CritiqueId,
        reasoning::split,
        seed::SeedPath,
        spec::Ablation,
    },
    experience::message::Message,
    prompt::Opening,
    rollout::Prompt,
};

/// A critique and what was generated for it.
pub(super) struct Judged {
    pub(super) critique: Critique,
    pub(super) predictions: Vec<Prediction>,
    pub(super) generations: Vec<Generation>,
    pub(super) env_steps: u64,
}

impl Judged {
    /// Log-probability of the token that decided the verdict; none where there is no verdict, or the engine tells no
    /// log-probabilities.
    pub(super) fn verdict_logprob(&self, setting: &Setting<'_>) -> Option<f32> {
        let said = self.generations.last()?;
        let logprobs = said.logprobs.as_ref()?;
        let ids: Vec<_> = said.token_ids.iter().map(|id| id.cast_unsigned()).collect();
        let sampler = setting.sampler;
        // If the whole text has a reasoning, its beginnings start inside that reasoning.
        let opening = match split(&said.text).reasoning {
            Some(_) => Opening::Inside,
            None => Opening::Answer,
        };
        let begun = |end: usize| {
            let text = sampler.encoder.decode(&ids[..end])?;
            sampler.encoder.written(opening, &ids[..end], text)
        };
        let decides = |end: &usize| {
            let verdict = begun(*end).map(|text| sampler.prompts.verdict(text.trim()));
            verdict.is_ok_and(|verdict| verdict == self.critique.verdict)
        };
        // Reasoning can be long, and it decides nothing.
        let start = sampler.encoder.answer_start(opening, &ids).ok()??;
        let end = (start.max(1)..=ids.len()).find(decides)?;
        logprobs.get(end - 1).copied()
    }

    pub(super) fn record(self, annotations: &mut Annotations) {
        annotations.generations.extend(self.generations);
        annotations.predictions.extend(self.predictions);
        annotations.critiques.push(self.critique);
        annotations.env_steps += self.env_steps;
    }
}

/// q = E(s, x, d1..dk), every d newly sampled from (s, x), never the real future.
pub(super) async fn judge(
    setting: &Setting<'_>,
    replayed: &Replayed,
    action: &Message,
    round: u32,
) -> Result<Judged, Fault> {
    let seed = setting.seed_of(replayed, "critique").index(u64::from(round));
    let round = i32::try_from(round).map_err(Fault::fail)?;
    let told = match setting.spec.ablation {
        Ablation::RawRollouts => real_rollouts::play(setting, replayed, action, &seed).await?,
        _ => predicted(setting, replayed, action, &seed).await?,
    };
    let real_rollouts::Told { mut generations, futures, env_steps } = told;
    let predictions: Vec<_> = (0..)
        .zip(&futures)
        .map(|(ordinal, generation)| {
            let transition_id = replayed.transition.id;
            let purpose = PredictionUse::Critique;
            successor::prediction(transition_id, purpose, round, ordinal, action, generation)
        })
        .collect();

    generations.extend(futures);

    let template = setting.sampler.prompts.evaluator();
    let futures: Vec<_> = predictions.iter().map(|p| p.text.as_str()).collect();
    let variables = serde_json::json!({ "futures": futures });
    let quoted = setting.quoted(action);
    let context =
        template.render(&replayed.state, Some(&quoted), &variables).map_err(Fault::fail)?;
    let weights = setting.spec.weights.evaluator;
    let sampling = setting.spec.sampling.evaluator;
    let prompt = Prompt {
        role: Role::Evaluator,
        template,
        context: &context,
        weights,
        sampling,
        seed: seed.label("verdict"),
    };
    let generation = setting.sampler.sample(prompt).await?;
    let critique = Critique {
        id: CritiqueId::new(),
        transition_id: replayed.transition.id,
        round,
        action: action.written().into_owned(),
        prediction_ids: predictions.iter().map(|p| p.id).collect(),
        generation_id: generation.id,
        verdict: generation
            .answer()
            .map_or(Verdict::Unparseable, |answer| setting.sampler.prompts.verdict(answer)),
        text: generation.said().unwrap_or_default().to_owned(),
    };
    generations.push(generation);
    Ok(Judged { critique, predictions, generations, env_steps })
}

/// d1..dk ~ M(· | s, x).
async fn predicted(
    setting: &Setting<'_>,
    replayed: &Replayed,
    action: &Message,
    seed: &SeedPath,
) -> Result<real_rollouts::Told, Fault> {
    let futures = successor::predict(
        setting,
        (&replayed.state, action),
        setting.spec.weights.successor,
        setting.spec.sampling.successor,
        seed.label("future").index(0),
        setting.spec.futures,
    )
    .await?;
    let (futures, generations) = successor::told(futures)?;
    Ok(real_rollouts::Told { generations, futures, env_steps: 0 })
}
