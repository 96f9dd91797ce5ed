//! Which phases an iteration has, and which units of work a phase.

use crate::domain::{job::Phase, spec::JobSpec, work::Payload};

/// Episodes per unit: what a crash may cost.
const EPISODES: u32 = 32;
/// Logged episodes per unit.
const LOGGED: u32 = 500;
/// Held-out episodes per unit.
const HELD_OUT: u32 = 100;
/// Transitions per unit.
const TRANSITIONS: u32 = 64;

/// The phase after `phase` in iteration `index`. Round 0 only publishes and evaluates the untrained
/// adapter.
pub fn next(spec: &JobSpec, index: u32, last: bool, phase: Phase) -> Phase {
    match phase {
        Phase::Collect => Phase::Annotate,
        Phase::Annotate => Phase::Learn,
        Phase::Learn => Phase::Publish,
        Phase::Publish if is_evaluated(spec, index, last) => Phase::Evaluate,
        // The untrained adapter has nothing to be assessed.
        Phase::Publish | Phase::Evaluate if index > 0 => Phase::Assess,
        Phase::Publish | Phase::Evaluate | Phase::Assess | Phase::Done => Phase::Done,
    }
}

/// The phase that an iteration begins with.
pub const fn first(index: u32) -> Phase {
    if index == 0 { Phase::Learn } else { Phase::Collect }
}

/// The first and the last round are always evaluated, with all episodes and at all temperatures.
fn is_evaluated(spec: &JobSpec, index: u32, last: bool) -> bool {
    index == 0 || last || index.is_multiple_of(spec.evaluation.every)
}

/// The units of a phase, in which the adapters of `version` act, or are gone on from.
pub fn units(spec: &JobSpec, index: u32, last: bool, phase: Phase, version: i32) -> Vec<Payload> {
    match phase {
        Phase::Collect => pieces(spec.rollout.episodes, EPISODES)
            .map(|(first, count)| Payload::Collect { version, first, count })
            .collect(),
        Phase::Annotate => {
            let replay = spec.algorithm.replay();
            let chunks = replay.map_or(1, |replay| replay.batch.div_ceil(TRANSITIONS));
            (0..chunks).map(|chunk| Payload::Annotate { version, chunk, chunks }).collect()
        }
        Phase::Learn => vec![Payload::Learn { version }],
        Phase::Publish => vec![Payload::Publish],
        Phase::Evaluate => {
            let evaluation = &spec.evaluation;
            let mut temperatures = vec![evaluation.temperature];
            let mut episodes = evaluation.interim_episodes;
            if index == 0 || last {
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
        Phase::Assess => vec![Payload::Assess],
        Phase::Done => Vec::new(),
    }
}

/// The units that link datasets of these sizes.
pub fn links(sizes: &[(&str, u32)]) -> Vec<Payload> {
    let mut units = Vec::new();
    let mut offset = 0;
    for (dataset, size) in sizes {
        units.extend(pieces(*size, LOGGED).map(|(first, count)| Payload::Link {
            dataset: (*dataset).to_owned(),
            offset,
            first,
            count,
        }));
        offset += size;
    }
    units
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
        let count = |index, last| {
            units(&spec(), index, last, Phase::Evaluate, 0)
                .iter()
                .map(|u| match u {
                    Payload::Evaluate { count, .. } => *count,
                    _ => 0,
                })
                .sum::<u32>()
        };
        assert_eq!(count(0, false), 500);
        assert_eq!(count(3, false), 100);
        assert_eq!(count(30, true), 500);
    }
}
