//! Corrected chain of thought: the target's reasoning is rewritten so that it cites nothing that was
//! not known before the action (NLAC appendix B.2), and checked.

use super::{Setting, target};
use crate::{
    algo::Replayed,
    domain::{
        annotation::TargetStatus,
        fault::Fault,
        generation::{Generation, Role},
    },
    rollout::Line,
};

/// The rewritings, the last of which stands.
pub(super) struct Corrected {
    pub(super) generations: Vec<Generation>,
    pub(super) status: TargetStatus,
}

/// Attempts before a target is given up.
const ATTEMPTS: u64 = 2;

/// Rewrites `draft` until it gives nothing away, twice at most.
pub(super) async fn correct(
    setting: &Setting<'_>,
    replayed: &Replayed,
    draft: &str,
) -> Result<Corrected, Fault> {
    let prompts = setting.cast.prompts;
    let template = prompts
        .corrector()
        .ok_or_else(|| Fault::Fail(format!("prompt set {} has no corrector", prompts.name())))?;
    let variables = serde_json::json!({ "target": draft });
    let messages = template
        .render(replayed.state(), Some(&replayed.transition.action), &variables)
        .map_err(Fault::fail)?;
    let seed = setting.seed_of(replayed, "corrector");
    let mut generations = Vec::new();
    for attempt in 0..ATTEMPTS {
        let line = Line {
            role: Role::Corrector,
            template,
            messages: &messages,
            weights: setting.spec.weights.corrector,
            sampling: setting.spec.sampling.corrector,
            seed: seed.index(attempt),
        };
        let rewritten = setting.cast.speak(line).await?;
        let mut status = target::status(setting, replayed, &rewritten);
        if status == TargetStatus::Accepted && leaks(setting, replayed, &rewritten.text) {
            status = TargetStatus::Leaked;
        }
        generations.push(rewritten);
        if status != TargetStatus::Leaked || attempt + 1 == ATTEMPTS {
            return Ok(Corrected { generations, status });
        }
    }
    Ok(Corrected { generations, status: TargetStatus::Leaked })
}

fn leaks(setting: &Setting<'_>, replayed: &Replayed, target: &str) -> bool {
    let known: Vec<_> = replayed
        .state()
        .iter()
        .map(|m| m.content.as_str())
        .chain([replayed.transition.action.as_str()])
        .collect();
    setting.cast.prompts.leak(target, &known.join("\n"), &replayed.transition.observation).is_some()
}
