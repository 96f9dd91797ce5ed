//! Gathering: the episodes that agents played through the gateway become an iteration's own.

use serde::{Deserialize, Serialize};

use super::{
    Worker,
    kind::{Planned, Work},
};
use crate::{
    domain::{
        fault::Fault,
        job::Phase,
        spec::GatewaySpec,
        work::{Class, Lease},
    },
    experience::episode::Purpose,
    store::{
        StoreError, gateway, leases, replay,
        rollouts::{self, Series},
        search,
        spending::{self, Spending},
    },
};

/// Most episodes of an iteration.
const MOST: i64 = 100_000;

/// Wait until agents have played enough, and take what they played.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gather {
    steps: u32,
    seconds: Option<u32>,
}

impl Work for Gather {
    const NAME: &'static str = "gather";
    const CLASS: Class = Class::Light;
    const PHASE: Phase = Phase::Collect;

    fn plan(iteration: &Planned<'_>) -> Vec<Self> {
        let gateway = iteration.spec.environment.gateway();
        gateway
            .map(|GatewaySpec { steps, seconds, .. }| Self { steps: *steps, seconds: *seconds })
            .into_iter()
            .collect()
    }

    async fn run(self, worker: &Worker, lease: &Lease) -> Result<(), Fault> {
        let (job, iteration) = worker.place(lease).await?;
        worker.watch_agents(&job, &iteration).await?;
        let mut tx = worker.store.begin().await?;
        leases::hold(&mut tx, lease).await?;
        let fresh = gateway::fresh(&mut tx, job.id, MOST).await?;
        let steps: i64 =
            fresh.iter().map(|episode| i64::from(episode.turns) - episode.pending).sum();
        let waited = worker.clock.now() - iteration.started_at;
        let is_late = self.seconds.is_some_and(|most| waited.whole_seconds() >= i64::from(most));
        if steps < i64::from(self.steps) && !(is_late && steps > 0) {
            let reason = format!("{steps} of {} new steps have their reward", self.steps);
            return Err(Fault::Away { peer: "agents".into(), reason });
        }
        let series = Series {
            job_id: job.id,
            iteration_id: iteration.id,
            purpose: Purpose::Collect,
            temperature: job.spec.rollout.temperature,
        };
        let ids: Vec<_> = fresh.iter().map(|episode| episode.id).collect();
        let numbered: Vec<_> = (0..).zip(ids.iter().copied()).collect();
        rollouts::insert_many(&mut tx, series, &numbered).await?;
        let new = {
            let place = (job.id, iteration.id, iteration.index);
            replay::link_rollouts(&mut tx, place, job.spec.held_out_every()).await?
        };
        search::refresh(&mut tx, job.id, &new).await?;
        gateway::set_gathered(&mut tx, &ids).await?;
        let taken = Spending { env_steps: new.len() as i64, ..Spending::default() };
        spending::add(&mut tx, iteration.id, taken).await?;
        leases::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }
}
