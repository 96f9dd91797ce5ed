//! The scalar critic (NLAC's ablation): the same model and the same updates, but the critic says a
//! number. A target is the reward plus the target model's own value of (s', a'), rounded at random to
//! one of the bins so that its mean is right; the policy learns several actions in proportion to
//! `exp(Q / α)` (algorithms sheet §1.9).

mod forecast;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use rand::Rng;

use super::{
    Algorithm, Annotations, Asked, Draw, Forecast, Needs, Replayed,
    left_out::all_but_refused,
    lesson::{self, Lesson},
    message_of,
};
use crate::{
    domain::{
        annotation::{Prediction, PredictionUse},
        fault::Fault,
        generation::{FinishReason, Generation, Role, Weights},
        ids::PredictionId,
        prompt::PromptPart,
        seed::SeedPath,
        spec::{SamplingSpec, ScalarSpec, TargetUpdate},
        training::{ExampleSource, Objective, TrainingExample},
    },
    experience::{context::Context, message::Message},
};
use crate::{prompt::Template, rollout::Prompt};

/// What the algorithm is handed beside the transitions.
pub type Setting<'a> = super::Setting<'a, ScalarSpec>;

/// A value is one token or two.
const VALUE_TOKENS: u32 = 4;

#[async_trait]
impl Algorithm for ScalarSpec {
    fn needs(&self) -> Needs {
        let longest_answer = self.action.max_tokens;
        Needs { prompts: vec![PromptPart::Value], longest_answer, ..Needs::default() }
    }

    fn draw(&self) -> Draw<'_> {
        Draw::Replay(&self.replay)
    }

    fn target(&self) -> TargetUpdate {
        self.target
    }

    fn forecast(&self, forecast: &Forecast<'_>) -> Option<Asked> {
        forecast::asked(self, forecast)
    }

    async fn annotate(
        &self,
        setting: &super::Setting<'_, ()>,
        batch: &[Replayed],
    ) -> Result<Annotations, Fault> {
        annotate(&setting.with(self), batch).await
    }
}

/// Annotates a batch: one critic example per transition, and as many policy examples as actions have a
/// value.
///
/// # Errors
/// The first fault of the engine, or of a prompt, that is not a refusal of some transitions alone.
pub async fn annotate(setting: &Setting<'_>, batch: &[Replayed]) -> Result<Annotations, Fault> {
    let mut annotations = Annotations::default();
    let targets = all_but_refused(batch.iter().map(|r| target(setting, r))).await?;
    let warmup = setting.iteration <= setting.spec.warmup_iterations;
    let improved = all_but_refused(batch.iter().map(|r| async move {
        let weight = setting.spec.policy_weight;
        if warmup { lesson::rehearse(setting, r, weight) } else { improve(setting, r).await }
    }));
    for (replayed, made) in batch.iter().zip(targets).chain(batch.iter().zip(improved.await?)) {
        if let Some(made) = annotations.heard(replayed, made) {
            annotations.generations.extend(made.generations);
            annotations.predictions.extend(made.predictions);
            annotations.examples.extend(made.examples);
        }
    }
    annotations.unless_all_are_left_out(batch)
}

/// y = r + Q(s', a'), or r at an ending; no example where no value could be read.
async fn target(setting: &Setting<'_>, replayed: &Replayed) -> Result<Annotations, Fault> {
    let mut made = Annotations::default();
    let transition = &replayed.transition;
    let Some(reward) = transition.reward else { return Ok(made) };
    let seed = setting.seed.index(replayed.position);
    let mut value = reward;
    if !transition.done {
        let next = &replayed.next_state;
        let sampling = setting.spec.action;
        let acting =
            setting.sampler.act(next, Weights::Target, sampling, seed.label("next_action"));
        let action = acting.await?;
        let taken = message_of(setting.read(&action, next));
        let judged =
            judge(setting, next, &taken, Weights::Target, seed.label("next_value")).await?;
        let q = judged.value;
        made.generations.push(action);
        record(&mut made, replayed, PredictionUse::Bootstrap, 0, &taken, judged.said);
        let Some(q) = q else { return Ok(made) };
        value += q;
    }
    let bin = bin(setting.spec, value, &seed);
    let template = template(setting)?;
    let prompt = template
        .render(&replayed.state, Some(&setting.quoted(&replayed.action)), &serde_json::json!({}))
        .map_err(Fault::fail)?;
    let encoder = setting.sampler.encoder;
    let said =
        encoder.completion(&prompt, &Message::assistant(bin.to_string())).map_err(Fault::fail)?;
    let lesson = Lesson {
        objective: Objective::Critic,
        source: ExampleSource::Target,
        transition_id: Some(transition.id),
        prompt_hash: template.hash(),
        prompt: &prompt,
        completion: lesson::signed(&said),
        weight: setting.spec.critic_weight * replayed.importance,
    };
    made.examples.push(lesson.encode(encoder)?);
    Ok(made)
}

/// A value's bin, rounded up with the probability that keeps its mean.
fn bin(spec: &ScalarSpec, value: f64, seed: &SeedPath) -> u32 {
    let last = f64::from(spec.bins - 1);
    let exact = ((value - spec.lowest) / (spec.highest - spec.lowest)).clamp(0.0, 1.0) * last;
    let chance: f64 = seed.label("bin").rng().random();
    (exact.floor() + f64::from(u8::from(chance < exact.fract()))) as u32
}

/// Several actions of the target policy, each weighed by the online critic's value of it. One that the token limit
/// cut has no weight.
async fn improve(setting: &Setting<'_>, replayed: &Replayed) -> Result<Annotations, Fault> {
    let seed = setting.seed.index(replayed.position);
    let (state, spec) = (&replayed.state, setting.spec);
    let sampling = SamplingSpec {
        temperature: setting.rollout.temperature,
        max_tokens: setting.rollout.max_tokens,
    };
    let actions = try_join_all((0..spec.candidates).map(|i| {
        let seed = seed.label("candidate").index(u64::from(i));
        setting.sampler.act(state, Weights::Target, sampling, seed)
    }))
    .await?;
    let read: Vec<_> = actions.iter().map(|reply| setting.read(reply, state)).collect();
    let readable: Vec<_> = read.iter().map(Result::is_ok).collect();
    let taken: Vec<_> = read.into_iter().map(message_of).collect();
    let judged = try_join_all((0..).zip(&taken).map(|(i, action)| {
        judge(setting, state, action, Weights::Online, seed.label("value").index(i))
    }))
    .await?;
    let mut made = Annotations::default();
    let mut valued = Vec::new();
    let each = actions.iter().zip(&taken).zip(readable).zip(judged);
    for (ordinal, (((action, taken), readable), judged)) in (0..).zip(each) {
        if let Some(value) = judged.value.filter(|_| readable) {
            valued.push((action, value));
        }
        record(&mut made, replayed, PredictionUse::Critique, ordinal, taken, judged.said);
    }
    let highest = valued.iter().map(|(_, v)| *v).fold(f64::MIN, f64::max);
    let weigh = |value: f64| ((value - highest) / f64::from(spec.temperature)).exp();
    let total: f64 = valued.iter().map(|(_, v)| weigh(*v)).sum();
    for (action, value) in &valued {
        let share = (weigh(*value) / total) as f32;
        let tokens = action.token_ids.clone();
        let source = ExampleSource::Candidate;
        made.examples.push(policy_example(setting, replayed, tokens, source, share)?);
    }
    made.generations.extend(actions);
    Ok(made)
}

/// What the critic said of an action.
struct Judged {
    /// Mean of the values that could be read.
    value: Option<f64>,
    said: Vec<Generation>,
}

async fn judge(
    setting: &Setting<'_>,
    state: &Context,
    action: &Message,
    weights: Weights,
    seed: SeedPath,
) -> Result<Judged, Fault> {
    let template = template(setting)?;
    let action = setting.quoted(action);
    let context =
        template.render(state, Some(&action), &serde_json::json!({})).map_err(Fault::fail)?;
    let sampling = SamplingSpec { temperature: 1.0, max_tokens: VALUE_TOKENS };
    let said = try_join_all((0..setting.spec.values).map(|i| {
        setting.sampler.sample(Prompt {
            role: Role::Value,
            template,
            context: &context,
            weights,
            sampling,
            seed: seed.index(u64::from(i)),
        })
    }))
    .await?;
    let spec = setting.spec;
    let step = (spec.highest - spec.lowest) / f64::from(spec.bins - 1);
    let values: Vec<f64> = said
        .iter()
        .filter(|g| g.finish_reason == FinishReason::Stop)
        .filter_map(|g| g.text.parse::<u32>().ok().filter(|bin| *bin < spec.bins))
        .map(|bin| f64::from(bin).mul_add(step, spec.lowest))
        .collect();
    let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    Ok(Judged { value, said })
}

fn template<'a>(setting: &Setting<'a>) -> Result<&'a Template, Fault> {
    let prompts = setting.sampler.prompts;
    let missing = || Fault::Fail(format!("prompt set {} has no value.md", prompts.name()));
    prompts.value().ok_or_else(missing)
}

/// Keeps what the critic said: the values of the i-th action are stored as round i.
fn record(
    made: &mut Annotations,
    replayed: &Replayed,
    purpose: PredictionUse,
    round: i32,
    action: &Message,
    said: Vec<Generation>,
) {
    made.predictions.extend((0..).zip(&said).map(|(ordinal, generation)| Prediction {
        id: PredictionId::new(),
        transition_id: replayed.transition.id,
        purpose,
        round,
        ordinal,
        action: action.written().into_owned(),
        generation_id: generation.id,
        text: generation.text.clone(),
    }));
    made.generations.extend(said);
}

fn policy_example(
    setting: &Setting<'_>,
    replayed: &Replayed,
    action: Vec<i32>,
    source: ExampleSource,
    share: f32,
) -> Result<TrainingExample, Fault> {
    let model = (setting.sampler.prompts, setting.sampler.encoder);
    lesson::policy(model, replayed, source, action, setting.spec.policy_weight * share)
}

#[cfg(test)]
mod tests {
    use super::bin;
    use crate::domain::{seed::SeedPath, spec::ScalarSpec};

    #[test]
    fn a_bin_keeps_the_mean_of_its_value() {
        let spec = ScalarSpec { bins: 5, lowest: -1.0, highest: 1.0, ..ScalarSpec::default() };
        let mean = |value: f64| {
            let bins = (0..4000).map(|i| bin(&spec, value, &SeedPath::root(1).index(i)));
            bins.map(|b| f64::from(b) * 0.5 - 1.0).sum::<f64>() / 4000.0
        };
        for value in [-1.0, -0.3, 0.1, 0.9, 1.0] {
            assert!((mean(value) - value).abs() < 0.02, "{value}: {}", mean(value));
        }
        assert!((mean(7.0) - 1.0).abs() < 1e-9);
    }
}
