//! NLQL's improvement: several actions are sampled in each state, the language critic judges each, and
//! the policy learns the first that it calls optimal (ablation: nothing is refined).

use futures_util::future::try_join_all;

use super::{Annotations, Candidate, Fate, Setting, critique};
use crate::algo::left_out::all_but_refused;
use crate::domain::{
    annotation::Verdict,
    fault::Fault,
    generation::{FinishReason, Generation, Weights},
    spec::SamplingSpec,
    training::ExampleSource,
};

/// Replaces every candidate by the best of `count` sampled actions, or drops it where none is good.
/// Critiques of the i-th action are stored as round i.
pub(super) async fn improve(
    setting: &Setting<'_>,
    count: u32,
    candidates: &mut [Candidate<'_>],
    annotations: &mut Annotations,
) -> Result<(), Fault> {
    let judged = all_but_refused(candidates.iter().map(|candidate| async {
        let actions = sample(setting, candidate, count).await?;
        let new = (0..).zip(&actions).filter(|(_, action)| is_new(setting, &actions, action));
        let judged = try_join_all(new.map(|(round, action)| {
            critique::judge(setting, candidate.replayed, &action.text, round)
        }));
        let judged = judged.await?;
        Ok((actions, judged))
    }))
    .await?;
    for (candidate, judged) in candidates.iter_mut().zip(judged) {
        let Some((actions, judged)) = candidate.heard(judged, annotations) else { continue };
        let best = judged.iter().find(|j| j.critique.verdict == Verdict::Yes);
        let best = best.and_then(|j| usize::try_from(j.critique.round).ok());
        match best.and_then(|round| actions.get(round)) {
            Some(action) => {
                candidate.reply.clone_from(&action.text);
                candidate.tokens = action.token_ids.iter().map(|t| t.cast_unsigned()).collect();
                candidate.source = ExampleSource::Candidate;
                candidate.fate = Fate::Accepted;
            }
            None => candidate.fate = Fate::Dropped,
        }
        annotations.generations.extend(actions);
        for judged in judged {
            judged.record(annotations);
        }
    }
    Ok(())
}

async fn sample(
    setting: &Setting<'_>,
    candidate: &Candidate<'_>,
    count: u32,
) -> Result<Vec<Generation>, Fault> {
    let seed = setting.seed_of(candidate.replayed, "candidate");
    let rollout = setting.rollout;
    let sampling =
        SamplingSpec { temperature: rollout.temperature, max_tokens: rollout.max_tokens };
    try_join_all((0..count).map(|i| {
        let seed = seed.index(u64::from(i));
        setting.cast.act(candidate.replayed.state(), Weights::Online, sampling, seed)
    }))
    .await
}

/// The first of those that the environment would take for the same action, if it can read it at all.
fn is_new(setting: &Setting<'_>, actions: &[Generation], action: &Generation) -> bool {
    let read = |g: &Generation| {
        let whole = g.finish_reason == FinishReason::Stop;
        setting.environment.parse_action(&g.text).filter(|_| whole)
    };
    let Some(meant) = read(action) else { return false };
    let first = actions.iter().find(|other| read(other).as_ref() == Some(&meant));
    first.is_some_and(|first| first.id == action.id)
}
