//! Language Monte Carlo: language values from what really followed an action.

use std::collections::{BTreeMap, HashMap};

use futures_util::future::try_join_all;

use super::{Setting, outcome::Outcome, value::value};
use crate::{
    algo::{Annotations, Replayed, left_out::all_but_refused},
    domain::{fault::Fault, ids::EpisodeId, spec::MonteCarloSpec},
    env::{Split, Task},
    experience::message::Message,
    rollout::{Origin, branch},
};

/// The steps that took the same action in the same state, each with its outcome; none where its episode has no known end.
type Same<'a> = Vec<(&'a Replayed, Option<Outcome>)>;

/// One language value for each chunk of outcomes of an action in a state. A chunk has `rollouts` outcomes; the last one
/// may have fewer.
pub(super) async fn values(
    setting: &Setting<'_>,
    form: &MonteCarloSpec,
    batch: &[Replayed],
) -> Result<Annotations, Fault> {
    let pairs = pairs(setting, batch);
    let of_pair = pairs.iter().map(|same| of_pair(setting, form, same));
    let mut made = Annotations::default();
    for (same, values) in pairs.iter().zip(all_but_refused(of_pair).await?) {
        for (step, _) in same {
            if let Err(reason) = &values {
                made.left_out.entry(step.transition.id).or_insert_with(|| reason.clone());
            }
        }
        values.into_iter().for_each(|values| made.join(values));
    }
    Ok(made)
}

/// The batch by state and action. An action that nobody can read is known by what was written.
fn pairs<'a>(setting: &Setting<'_>, batch: &'a [Replayed]) -> Vec<Same<'a>> {
    let mut episodes: BTreeMap<EpisodeId, Vec<&Replayed>> = BTreeMap::new();
    for step in batch {
        episodes.entry(step.transition.episode_id).or_default().push(step);
    }
    let mut places = HashMap::<(&[Message], Option<String>, String), usize>::new();
    let mut pairs: Vec<Same<'a>> = Vec::new();
    for step in batch {
        let episode = &episodes[&step.transition.episode_id];
        let from = episode.partition_point(|other| other.transition.step < step.transition.step);
        let outcome = Outcome::of_episode(&episode[from..]);
        let key = setting.key(&step.action, &step.state);
        let written = if key.is_some() { String::new() } else { step.action.written().into_owned() };
        let place = *places.entry((step.state.messages(), key, written)).or_insert(pairs.len());
        if place == pairs.len() {
            pairs.push(Same::new());
        }
        pairs[place].push((step, outcome));
    }
    pairs
}

async fn of_pair(
    setting: &Setting<'_>,
    form: &MonteCarloSpec,
    same: &Same<'_>,
) -> Result<Annotations, Fault> {
    let mut made = Annotations::default();
    let steps: Vec<_> = same.iter().map(|(step, _)| *step).collect();
    let mut outcomes: Vec<_> =
        same.iter().filter_map(|(step, outcome)| Some((*step, outcome.clone()?))).collect();
    let wanted = (form.rollouts as usize).saturating_sub(outcomes.len());
    if let Some(first) = steps.first() {
        let further = further(setting, first, wanted, &mut made).await?;
        outcomes.extend(further.into_iter().map(|outcome| (*first, outcome)));
    }
    let chunks = outcomes.chunks(form.rollouts.max(1) as usize).map(|chunk| {
        let read: Vec<_> = chunk.iter().map(|(_, outcome)| outcome.clone()).collect();
        let steps = &steps;
        async move { value(setting, chunk[0].0, steps, &read).await }
    });
    try_join_all(chunks).await?.into_iter().for_each(|value| made.join(value));
    Ok(made)
}

/// Rollouts that repeat a step and go on from there, where the environment is replayable and the task went on.
async fn further(
    setting: &Setting<'_>,
    step: &Replayed,
    count: usize,
    made: &mut Annotations,
) -> Result<Vec<Outcome>, Fault> {
    let replayable = setting.environment.capabilities().replayable;
    let Some(seed) = step.episode_seed.filter(|_| replayable && !step.transition.done) else {
        return Ok(Vec::new());
    };
    let (rollout, task) = (&setting.rollouts(), &Task::Drawn(Split::Train));
    let origin = Origin { task, seed, state: &step.state };
    let text = step.action.written();
    let played = try_join_all((0..count).map(|ordinal| {
        let seed = setting.seed_of(step, "rollout").index(ordinal as u64);
        let text = text.as_ref();
        async move { branch(rollout, origin, text, &seed).await }
    }))
    .await?;
    let outcomes = played.iter().filter_map(Outcome::of_rollout).collect();
    for played in played {
        made.env_steps += played.steps.len() as u64;
        made.generations.extend(played.steps.into_iter().filter_map(|step| step.generation));
    }
    Ok(outcomes)
}
