//! What every unit of work starts from: its job, its iteration, and who plays in it.

use std::{ops::Deref, sync::Arc};

use super::{Peers, Worker};
use crate::{
    algo::Setting,
    domain::{
        checkpoint::{Checkpoint, CheckpointRole},
        fault::Fault,
        job::{Iteration, Job},
        seed::SeedPath,
        work::Lease,
    },
    engine::{Adapter, Engine, Frozen, Origin},
    env::{Environment, build},
    prompt::{Encoder, PromptSet},
    rollout::{Cast, Published},
    store::{Store, checkpoints, iterations, jobs},
};

/// Who speaks in a job, by what prompts, in which environment.
pub(super) struct Players {
    pub job: Job,
    pub engine: Arc<dyn Engine>,
    pub frozen: Option<Arc<dyn Frozen>>,
    pub encoder: Encoder,
    pub prompts: PromptSet,
    pub environment: Arc<dyn Environment>,
    /// The checkpoints that act; none where the base model does.
    pub online: Option<Checkpoint>,
    pub target: Option<Checkpoint>,
}

/// A job's iteration, with its players.
pub(super) struct Scene {
    pub iteration: Iteration,
    players: Players,
}

impl Deref for Scene {
    type Target = Players;

    fn deref(&self) -> &Players {
        &self.players
    }
}

/// Root of the choices that a job makes for a purpose in an iteration.
pub(super) fn chance(job: &Job, purpose: &str, iteration: u32) -> SeedPath {
    SeedPath::root(job.spec.seed).label(purpose).index(u64::from(iteration))
}

impl Scene {
    /// Number of the iteration.
    pub fn index(&self) -> u32 {
        self.iteration.index.cast_unsigned()
    }

    /// Root of the iteration's choices for a purpose.
    pub fn seed(&self, purpose: &str) -> SeedPath {
        chance(&self.job, purpose, self.index())
    }

    /// What an algorithm is handed.
    pub fn setting<'a, S>(
        &'a self,
        cast: &'a Cast<'a>,
        spec: &'a S,
        seed: SeedPath,
    ) -> Setting<'a, S> {
        let (environment, rollout) = (&*self.environment, &self.job.spec.rollout);
        Setting { cast, environment, rollout, spec, iteration: self.index(), seed }
    }

    /// Everybody who may speak in a unit of work: both adapters are there.
    pub fn cast(&self) -> Result<Cast<'_>, Fault> {
        if self.online.is_none() || self.target.is_none() {
            return Err(Fault::Fail("the adapters of this iteration are not there".into()));
        }
        let origin = Origin { job: self.job.id, iteration: self.iteration.index };
        Ok(Cast { origin: Some(origin), ..self.players.cast() })
    }
}

impl Players {
    /// Everybody who may speak, on behalf of no job.
    pub fn cast(&self) -> Cast<'_> {
        let published = |checkpoint: &Checkpoint| Published {
            checkpoint_id: checkpoint.id,
            adapter: Adapter::from(checkpoint),
        };
        Cast {
            engine: &*self.engine,
            prompts: &self.prompts,
            encoder: &self.encoder,
            online: self.online.as_ref().map(published),
            target: self.target.as_ref().map(published),
            frozen: self.frozen.as_deref(),
            origin: None,
        }
    }
}

impl Peers {
    /// The players of a job with the adapters of `version`.
    pub(super) async fn players(
        &self,
        store: &Store,
        job: Job,
        version: i32,
    ) -> Result<Players, Fault> {
        let mut conn = store.acquire().await?;
        let (online, target) = (CheckpointRole::Online, CheckpointRole::Target);
        let online = checkpoints::version(&mut conn, job.id, online, version).await?;
        let target = checkpoints::version(&mut conn, job.id, target, version).await?;
        let pinned = jobs::prompt_hashes(&mut conn, job.id).await?;
        drop(conn);

        let prompts = PromptSet::load(&job.spec.model.prompts).map_err(Fault::fail)?;
        let present = serde_json::to_value(prompts.hashes()).map_err(Fault::fail)?;
        if present != pinned {
            return Err(Fault::Fail(format!(
                "the prompts of set {} have changed since the job was submitted; submit it again, or \
                 run it with the version of nlac that it was submitted to",
                prompts.name()
            )));
        }
        let (engine, encoder) = self.engine(store, &job.spec.model).await?;
        let frozen = self.frozen(store, &job.spec.model).await?;
        let environment = build(&job.spec.environment);
        Ok(Players { job, engine, frozen, encoder, prompts, environment, online, target })
    }
}

impl Worker {
    /// Sets the scene of a unit in which the adapters of `version` act.
    pub(super) async fn scene(
        &self,
        lease: &Lease,
        version: impl Fn(&Iteration) -> i32,
    ) -> Result<Scene, Fault> {
        let mut conn = self.store.acquire().await?;
        let gone = || Fault::Fail("the job or its iteration is gone".into());
        let job = jobs::get(&mut conn, lease.job_id).await?.ok_or_else(gone)?;
        let iteration = iterations::get(&mut conn, lease.iteration_id).await?.ok_or_else(gone)?;
        drop(conn);
        tracing::Span::current().record("nlac.iteration", iteration.index);
        let players = self.peers.players(&self.store, job, version(&iteration)).await?;
        Ok(Scene { iteration, players })
    }
}
