//! Language values: one text from the outcomes of an action, which the successor learns to write without them.

use super::{Setting, outcome::Outcome};
use crate::{
    algo::{
        Annotations, Replayed,
        lesson::Lesson,
        nlac::{
            successor,
            target::{attempts, status},
        },
    },
    domain::{
        annotation::{Target, TargetStatus},
        fault::Fault,
        generation::Role,
        ids::TargetId,
        training::{ExampleSource, Objective},
    },
    rollout::Prompt,
};

/// Writes the language value of an action from its outcomes, and the example that teaches it. `same` holds the
/// transitions that took the same action in the same state; a value may quote the observation of any of them. A
/// value that is not in the form that the prompt set prescribes is written once more, then dropped and counted.
pub(super) async fn value(
    setting: &Setting<'_>,
    step: &Replayed,
    same: &[&Replayed],
    outcomes: &[Outcome],
) -> Result<Annotations, Fault> {
    let prompts = setting.sampler.prompts;
    let missing = || Fault::Fail(format!("prompt set {} has no aggregator.md", prompts.name()));
    let template = prompts.aggregator().ok_or_else(missing)?;
    let variables = serde_json::json!({ "outcomes": outcomes });
    let action = setting.quoted(&step.action);
    let context = template.render(&step.state, Some(&action), &variables).map_err(Fault::fail)?;
    let context = &context;
    let written = attempts(setting.spec.sampling.aggregator, |sampling, attempt| async move {
        let prompt = Prompt {
            role: Role::Aggregator,
            template,
            context,
            weights: setting.spec.weights.aggregator,
            sampling,
            seed: setting.seed_of(step, "aggregate").index(attempt),
        };
        let text = setting.sampler.sample(prompt).await?;
        let accepted = |of: &&Replayed| status(setting, of, &text) == TargetStatus::Accepted;
        let status = match same.iter().copied().any(|of| accepted(&of)) {
            true => TargetStatus::Accepted,
            false => status(setting, step, &text),
        };
        Ok((text, status))
    });
    let written = written.await?;
    let (mut made, status) = (Annotations::default(), written.status);
    let Some(text) = written.texts.last() else { return Ok(made) };
    made.targets.push(Target {
        id: TargetId::new(),
        transition_id: step.transition.id,
        next_action_generation_id: None,
        next_prediction_id: None,
        generation_id: text.id,
        outcomes: i32::try_from(outcomes.len()).map_err(Fault::fail)?,
        text: text.text.clone(),
        status,
    });
    if status == TargetStatus::Accepted {
        // The successor's prompt of (s, a) alone: it holds no outcome.
        let prompt = successor::prompt(setting, &step.state, &step.action)?;
        let lesson = Lesson {
            objective: Objective::Critic,
            source: ExampleSource::Target,
            transition_id: Some(step.transition.id),
            prompt_hash: prompts.successor().hash(),
            prompt: &prompt,
            completion: text.token_ids.clone(),
            weight: setting.spec.critic_weight * step.importance,
        };
        made.examples.push(lesson.encode(setting.sampler.encoder)?);
    }
    made.generations = written.texts;
    Ok(made)
}
