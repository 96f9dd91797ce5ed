//! Which phases an iteration has, and which units of work a phase.

use crate::domain::{
    job::Phase,
    spec::{AlgorithmSpec, JobSpec},
    work::Payload,
};

/// Episodes per unit: what a crash may cost.
const EPISODES: u32 = 32;
/// Held-out episodes per unit.
const HELD_OUT: u32 = 100;
/// Transitions per unit.
const TRANSITIONS: u32 = 64;

/// The phase after `phase` in iteration `index`. Round 0 only publishes and evaluates the untrained
/// adapter.
pub fn next(spec: &JobSpec, index: u32, phase: Phase) -> Phase {
    match phase {
        Phase::Collect => Phase::Annotate,
        Phase::Annotate => Phase::Learn,
        Phase::Learn => Phase::Publish,
        Phase::Publish if is_evaluated(spec, index) => Phase::Evaluate,
        Phase::Publish | Phase::Evaluate | Phase::Done => Phase::Done,
    }
}

/// The phase that an iteration begins with.
pub const fn first(index: u32) -> Phase {
    if index == 0 { Phase::Learn } else { Phase::Collect }
}

/// The first and the last round are always evaluated, with all episodes and at all temperatures.
fn is_evaluated(spec: &JobSpec, index: u32) -> bool {
    is_edge(spec, index) || index.is_multiple_of(spec.evaluation.every)
}

const fn is_edge(spec: &JobSpec, index: u32) -> bool {
    index == 0 || index == spec.budget.iterations
}

/// The units of a phase.
pub fn units(spec: &JobSpec, index: u32, phase: Phase) -> Vec<Payload> {
    match phase {
        Phase::Collect => pieces(spec.rollout.episodes, EPISODES)
            .map(|(first, count)| Payload::Collect { first, count })
            .collect(),
        Phase::Annotate => {
            let chunks = match &spec.algorithm {
                AlgorithmSpec::Nlac(nlac) => nlac.replay.batch.div_ceil(TRANSITIONS),
                AlgorithmSpec::RejectionFineTuning(_) => 1,
            };
            (0..chunks).map(|chunk| Payload::Annotate { chunk, chunks }).collect()
        }
        Phase::Learn => vec![Payload::Learn],
        Phase::Publish => vec![Payload::Publish],
        Phase::Evaluate => {
            let evaluation = &spec.evaluation;
            let mut temperatures = vec![evaluation.temperature];
            let mut episodes = evaluation.interim_episodes;
            if is_edge(spec, index) {
                episodes = evaluation.episodes;
                for other in &evaluation.also {
                    if !temperatures.contains(other) {
                        temperatures.push(*other);
                    }
                }
            }
            let all = temperatures.into_iter().flat_map(|temperature| {
                pieces(episodes, HELD_OUT).map(move |(first, count)| Payload::Evaluate {
                    temperature,
                    first,
                    count,
                })
            });
            all.collect()
        }
        Phase::Done => Vec::new(),
    }
}

fn pieces(total: u32, size: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..total.div_ceil(size)).map(move |i| (i * size, size.min(total - i * size)))
}

#[cfg(test)]
mod tests {
    use super::{pieces, units};
    use crate::domain::{job::Phase, spec::JobSpec, work::Payload};

    fn spec() -> JobSpec {
        let text = r#"{"name": "x", "environment": {"kind": "help_desk"}, "model": {"base": "b"},
            "algorithm": {"kind": "nlac"}, "evaluation": {"every": 3, "episodes": 250,
            "interim_episodes": 100, "temperature": 0.5, "also": [0.5, 1.0]}}"#;
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn pieces_cover_everything_once() {
        for total in [1, 31, 32, 33, 100] {
            let covered: Vec<u32> =
                pieces(total, 32).flat_map(|(first, count)| first..first + count).collect();
            assert_eq!(covered, (0..total).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_edges_are_evaluated_in_full_and_no_temperature_twice() {
        let count = |index| {
            units(&spec(), index, Phase::Evaluate)
                .iter()
                .map(|u| match u {
                    Payload::Evaluate { count, .. } => *count,
                    _ => 0,
                })
                .sum::<u32>()
        };
        assert_eq!(count(0), 500);
        assert_eq!(count(3), 100);
        assert_eq!(count(30), 500);
    }
}
