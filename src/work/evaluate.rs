//! Evaluating: the policy plays held-out episodes, to measure. Their steps are not stored as transitions.

use serde::{Deserialize, Serialize};

use super::{
    Worker,
    kind::{Planned, Work, pieces},
};
use crate::{
    domain::{
        fault::Fault,
        job::Phase,
        work::{Class, Lease},
    },
    experience::episode::Purpose,
    store::{episodes, leases, rollouts},
};

/// Held-out episodes per unit.
const EPISODES: u32 = 100;

/// Play held-out episodes `first .. first + count` at a sampling temperature with the iteration's own adapter.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Evaluate {
    /// 0 is greedy.
    temperature: f32,
    first: u32,
    count: u32,
}

impl Work for Evaluate {
    const NAME: &'static str = "evaluate";
    const CLASS: Class = Class::Environment;
    const PHASE: Phase = Phase::Evaluate;

    /// The first and the last iteration are evaluated in full.
    fn plan(iteration: &Planned<'_>) -> Vec<Self> {
        let evaluation = &iteration.spec.evaluation;
        let mut temperatures = vec![evaluation.temperature];
        let mut episodes = evaluation.interim_episodes;
        if iteration.index == 0 || iteration.last {
            episodes = evaluation.episodes;
            for other in &evaluation.also {
                if !temperatures.contains(other) {
                    temperatures.push(*other);
                }
            }
        }
        let of = |temperature| {
            let pieces = pieces(episodes, EPISODES);
            pieces.map(move |(first, count)| Self { temperature, first, count })
        };
        temperatures.into_iter().flat_map(of).collect()
    }

    async fn run(self, worker: &Worker, lease: &Lease) -> Result<(), Fault> {
        let context = worker.context(lease, |iteration| iteration.index).await?;
        let series = context.series(Purpose::Evaluate, self.temperature);
        let (played, failed) =
            worker.play_missing(&context, series, self.first..self.first + self.count).await?;
        let rows = played.iter().map(|(_, played)| worker.episode(&context, played));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let ordinals = played.iter().map(|(ordinal, _)| ordinal.cast_signed());
        let ordinals: Vec<_> = ordinals.zip(rows.iter().map(|episode| episode.id)).collect();
        let mut tx = worker.store.begin().await?;
        leases::hold(&mut tx, lease).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        rollouts::insert_many(&mut tx, series, &ordinals).await?;
        worker.finish(tx, lease, failed).await
    }
}
