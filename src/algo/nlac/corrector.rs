//! Corrected chain of thought: the target's reasoning is rewritten so that it cites nothing that was
//! not known before the action (NLAC appendix B.2), and checked.

use super::{
    Setting,
    target::{self, Written},
};
use crate::{
    algo::Replayed,
    domain::{fault::Fault, generation::Role},
    rollout::Prompt,
};

/// Rewrites `draft` until it has the form of a target and gives nothing away, twice at most.
pub(super) async fn correct(
    setting: &Setting<'_>,
    replayed: &Replayed,
    draft: &str,
) -> Result<Written, Fault> {
    let prompts = setting.sampler.prompts;
    let template = prompts
        .corrector()
        .ok_or_else(|| Fault::Fail(format!("prompt set {} has no corrector", prompts.name())))?;
    let variables = serde_json::json!({ "target": draft });
    let context = template
        .render(&replayed.state, Some(&setting.quoted(&replayed.action)), &variables)
        .map_err(Fault::fail)?;
    let context = &context;
    target::attempts(setting.spec.sampling.corrector, |sampling, attempt| async move {
        let prompt = Prompt {
            role: Role::Corrector,
            template,
            context,
            weights: setting.spec.weights.corrector,
            sampling,
            seed: setting.seed_of(replayed, "corrector").index(attempt),
        };
        let rewritten = setting.sampler.sample(prompt).await?;
        let status = target::status(setting, replayed, &rewritten);
        Ok((rewritten, status))
    })
    .await
}
