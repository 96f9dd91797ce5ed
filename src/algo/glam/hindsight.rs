//! Hindsight: an episode that missed its goal reached others, and teaches these.
//!
//! The source does not say which strategy it used (algorithms sheet §2.4), so three are here. A relabelled episode ends
//! with reward 1 at the step that reached the new goal. The stored episode stays as it is.

use std::collections::HashSet;

use rand::{Rng, seq::SliceRandom};

use super::returns::Moment;
use crate::domain::spec::{HindsightSpec, HindsightStrategy};

/// Joins the halves of a goal of which the first must be reached before the second.
const THEN: &str = " then ";

/// A goal that an episode reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The goal.
    pub goal: String,
    /// The step that reached it first.
    pub at: usize,
}

/// The goals that an episode reached, by the step that reached each first. `achieved` are those of each step, as the
/// environment told them. The commanded goal is none of them; "one then other" is one only where a step before had
/// reached the first half.
#[must_use]
pub fn hits(achieved: &[Vec<String>], commanded: &str) -> Vec<Hit> {
    let mut seen = HashSet::new();
    let mut hits: Vec<Hit> = Vec::new();
    let mut all: Vec<Hit> = Vec::new();
    for (at, goals) in achieved.iter().enumerate() {
        for goal in goals {
            if !seen.insert(goal.as_str()) {
                continue;
            }
            all.push(Hit { goal: goal.clone(), at });
        }
    }
    for hit in &all {
        let in_order = match hit.goal.split_once(THEN) {
            None => true,
            Some((first, _)) => {
                all.iter().any(|earlier| earlier.goal == first && earlier.at < hit.at)
            }
        };
        if in_order && hit.goal != commanded {
            hits.push(hit.clone());
        }
    }
    hits
}

/// The goals that step `at` may learn instead of its own: those that the strategy takes and that no earlier step had
/// reached. `of_episode` makes the choices that are the same for all steps of an episode, `of_step` those of this step.
pub fn goals(
    hits: &[Hit],
    spec: &HindsightSpec,
    at: usize,
    of_episode: &mut impl Rng,
    of_step: &mut impl Rng,
) -> Vec<Hit> {
    let most = spec.goals_per_episode as usize;
    let mut taken: Vec<Hit> = match spec.strategy {
        HindsightStrategy::Oracle | HindsightStrategy::Future => hits.to_vec(),
        HindsightStrategy::Final => {
            let last = hits.iter().map(|hit| hit.at).max();
            hits.iter().filter(|hit| Some(hit.at) == last).cloned().collect()
        }
    };
    let ahead = |hit: &Hit| hit.at >= at;
    match spec.strategy {
        HindsightStrategy::Future => {
            taken.retain(ahead);
            taken.shuffle(of_step);
            taken.truncate(most);
        }
        HindsightStrategy::Oracle | HindsightStrategy::Final => {
            taken.shuffle(of_episode);
            taken.truncate(most);
            taken.retain(ahead);
        }
    }
    taken
}

/// The goal that a step learns instead of its own; none leaves it as it was. With n goals the chance is n / (n + 1), as
/// if a copy for each goal lay in replay beside the original, and `share` at most.
pub fn draw(goals: &[Hit], share: f32, rng: &mut impl Rng) -> Option<Hit> {
    let copies = goals.len() as f64;
    let chance = (copies / (copies + 1.0)).min(f64::from(share));
    // Both numbers are always drawn, so that one step's choice moves no other's.
    let (lot, place) = (rng.random::<f64>(), rng.random::<f64>());
    let chosen = goals.get((place * copies) as usize);
    chosen.filter(|_| lot < chance).cloned()
}

/// An episode as it would have been with the goal of a hit: reward 1 and the end at the step that reached it, 0 before,
/// and nothing after.
#[must_use]
pub fn relabel(episode: &[Moment], hit: &Hit) -> Vec<Moment> {
    let steps = episode.iter().take(hit.at + 1).enumerate();
    steps
        .map(|(place, _)| {
            let reached = place == hit.at;
            let reward = Some(f64::from(u8::from(reached)));
            Moment { reward, done: reached, truncated: false }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::algo::glam::returns::n_step;

    fn achieved(steps: &[&[&str]]) -> Vec<Vec<String>> {
        steps.iter().map(|goals| goals.iter().map(ToString::to_string).collect()).collect()
    }

    fn spec(strategy: HindsightStrategy, goals_per_episode: u32) -> HindsightSpec {
        HindsightSpec { strategy, goals_per_episode, share: 0.8 }
    }

    fn hit(goal: &str, at: usize) -> Hit {
        Hit { goal: goal.into(), at }
    }

    fn named(spec: &HindsightSpec, hits: &[Hit], at: usize) -> Vec<String> {
        let mut rngs = [1, 2].map(ChaCha8Rng::seed_from_u64);
        let [one, other] = &mut rngs;
        let mut goals: Vec<_> =
            goals(hits, spec, at, one, other).into_iter().map(|h| h.goal).collect();
        goals.sort();
        goals
    }

    #[test]
    fn invariant_21_hits_are_first_ones_in_order_and_never_the_commanded_goal() {
        let steps = achieved(&[
            &["b"],
            &["a", "a then c"],
            &["b", "d"],
            &["c", "a then b", "x then d", "commanded"],
        ]);
        let found = hits(&steps, "commanded");
        // `a then c` came in the step of `a` itself, and nobody reached `x`.
        assert_eq!(found, [hit("b", 0), hit("a", 1), hit("d", 2), hit("c", 3), hit("a then b", 3)]);
        assert!(hits(&steps, "a then b").iter().all(|hit| hit.goal != "a then b"));
    }

    #[test]
    fn invariant_21_a_relabelled_episode_ends_where_it_reached_the_goal() {
        let step = |reward, done| Moment { reward: Some(reward), done, truncated: false };
        let original = [step(0.0, false), step(0.5, false), step(0.0, false), step(0.0, true)];
        let kept = original;
        let made = relabel(&original, &hit("a", 2));
        assert_eq!(made, [step(0.0, false), step(0.0, false), step(1.0, true)]);
        assert_eq!(original, kept);
        // Returns are those of the new rewards: the old 0.5 is in none of them.
        let found = n_step(&made, 0, 3, 0.9).map(|found| (found.sum, found.discount));
        assert!(found.is_some_and(|(sum, after)| (sum - 0.81).abs() < 1e-6 && after == 0.0));
        assert_eq!(n_step(&made, 3, 3, 0.9), None, "no step after the hit");
    }

    #[test]
    fn invariant_21_strategies_take_goals_that_are_still_ahead() {
        let all = [hit("a", 0), hit("b", 2), hit("c", 4), hit("d", 4)];
        let oracle = spec(HindsightStrategy::Oracle, 16);
        assert_eq!(named(&oracle, &all, 0), ["a", "b", "c", "d"]);
        assert_eq!(named(&oracle, &all, 2), ["b", "c", "d"]);
        assert_eq!(named(&oracle, &all, 5), [""; 0]);
        assert_eq!(named(&spec(HindsightStrategy::Final, 16), &all, 1), ["c", "d"]);
        // The future has so many goals at every step, the oracle so many in all.
        assert_eq!(named(&spec(HindsightStrategy::Future, 2), &all, 2).len(), 2);
        let few = spec(HindsightStrategy::Oracle, 2);
        let (first, later) = (named(&few, &all, 0), named(&few, &all, 3));
        assert_eq!(first.len(), 2);
        assert!(later.iter().all(|goal| first.contains(goal)), "{first:?} {later:?}");
    }

    #[test]
    fn invariant_21_the_share_is_capped_and_a_step_without_goals_keeps_its_own() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let many: Vec<_> = (0..20).map(|at| hit("a", at)).collect();
        for (goals, share, due) in
            [(&many[..], 0.8, 0.8), (&many[..1], 0.8, 0.5), (&many[..], 0.0, 0.0), (&[], 0.8, 0.0)]
        {
            let drawn = (0..4000).filter(|_| draw(goals, share, &mut rng).is_some()).count();
            let found = drawn as f64 / 4000.0;
            assert!((found - due).abs() < 0.03, "{found}, not {due}");
        }
    }
}
