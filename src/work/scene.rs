//! What every unit of work starts from: its job, its iteration, and who plays in it.

use std::{path::PathBuf, sync::Arc};

use super::Worker;
use crate::{
    algo::Setting,
    domain::{
        checkpoint::{Checkpoint, CheckpointRole},
        fault::Fault,
        job::{Iteration, Job},
        seed::SeedPath,
        work::Lease,
    },
    engine::{Adapter, Engine, Frozen},
    env::{Environment, build},
    prompt::{Encoder, PromptSet},
    rollout::{Cast, Published},
    store::{checkpoints, iterations, jobs},
};

/// A job's iteration, with its players.
pub(super) struct Scene {
    pub job: Job,
    pub iteration: Iteration,
    pub engine: Arc<dyn Engine>,
    pub frozen: Option<Arc<dyn Frozen>>,
    pub encoder: Encoder,
    pub prompts: PromptSet,
    pub environment: Arc<dyn Environment>,
    /// The checkpoints that act in this unit.
    pub online: Option<Checkpoint>,
    pub target: Option<Checkpoint>,
}

impl Scene {
    /// Number of the iteration.
    pub fn index(&self) -> u32 {
        self.iteration.index.cast_unsigned()
    }

    /// Root of the iteration's choices for a purpose.
    pub fn seed(&self, purpose: &str) -> SeedPath {
        SeedPath::root(self.job.spec.seed).label(purpose).index(u64::from(self.index()))
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

    /// Everybody who may speak.
    pub fn cast(&self) -> Result<Cast<'_>, Fault> {
        let published = |checkpoint: &Option<Checkpoint>| {
            let checkpoint = checkpoint.as_ref().ok_or_else(|| {
                Fault::Fail("the adapters of this iteration are not there".into())
            })?;
            let path = PathBuf::from(&checkpoint.path);
            let adapter = Adapter { name: checkpoint.name.clone(), path };
            Ok::<_, Fault>(Published { checkpoint_id: checkpoint.id, adapter })
        };
        Ok(Cast {
            engine: &*self.engine,
            prompts: &self.prompts,
            encoder: &self.encoder,
            online: published(&self.online)?,
            target: published(&self.target)?,
            frozen: self.frozen.as_deref(),
            job: Some(self.job.id),
        })
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
        let version = version(&iteration);
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
        let (engine, encoder) = self.peers.engine(&self.store, &job.spec.model).await?;
        let frozen = self.peers.frozen(&self.store, &job.spec.model).await?;
        let environment = build(&job.spec.environment);
        Ok(Scene { job, iteration, engine, frozen, encoder, prompts, environment, online, target })
    }
}
