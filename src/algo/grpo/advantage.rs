//! How much better an episode was than its group.

use std::collections::{BTreeMap, BTreeSet};

use crate::{algo::Replayed, domain::ids::EpisodeId};

/// Keeps the division by a small standard deviation finite.
const EPSILON: f64 = 1e-6;

/// The advantage of each episode of a batch of whole groups: its return, less the mean of its group's returns, divided by
/// their standard deviation (over n − 1) where `normalize` says so. A group of one has its return.
///
/// Episodes of one group have one environment seed. The return of a truncated episode is what it had gained by then. An
/// episode with a reward that is not known yet has no return; neither it nor its group waits.
#[must_use]
pub fn advantages(batch: &[Replayed], normalize: bool) -> BTreeMap<EpisodeId, f32> {
    let mut returns: BTreeMap<EpisodeId, (Option<i64>, f64)> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for replayed in batch {
        let transition = &replayed.transition;
        let (_, sum) = returns.entry(transition.episode_id).or_insert((replayed.episode_seed, 0.0));
        match transition.reward {
            Some(reward) => *sum += reward,
            None => drop(unknown.insert(transition.episode_id)),
        }
    }
    returns.retain(|episode, _| !unknown.contains(episode));
    let mut groups: BTreeMap<Option<i64>, Vec<(EpisodeId, f64)>> = BTreeMap::new();
    for (episode, (group, gained)) in returns {
        groups.entry(group).or_default().push((episode, gained));
    }
    groups.into_values().flat_map(|group| compared(&group, normalize)).collect()
}

fn compared(group: &[(EpisodeId, f64)], normalize: bool) -> Vec<(EpisodeId, f32)> {
    let count = group.len() as f64;
    if let [(episode, gained)] = group {
        return vec![(*episode, *gained as f32)];
    }
    let mean = group.iter().map(|(_, gained)| gained).sum::<f64>() / count;
    let squares = group.iter().map(|(_, gained)| (gained - mean).powi(2)).sum::<f64>();
    let scale = if normalize { (squares / (count - 1.0)).sqrt() + EPSILON } else { 1.0 };
    group.iter().map(|(episode, gained)| (*episode, ((gained - mean) / scale) as f32)).collect()
}

/// How fast the divergence from the base model grows with a token's log-probability: the derivative of k3,
/// `exp(base − new) − (base − new) − 1`, where the policy is still the one that sampled.
#[must_use]
pub fn divergence_pull(new: f32, base: f32) -> f32 {
    1.0 - (base - new).clamp(-10.0, 10.0).exp()
}
