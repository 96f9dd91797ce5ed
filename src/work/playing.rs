//! Playing the episodes of a unit, each once, however often the unit is tried.

use std::ops::Range;

use futures_util::future::join_all;

use super::{
    Worker,
    context::{IterationContext, chance},
};
use crate::{
    domain::{fault::Fault, ids::EpisodeId, work::Lease},
    env::{Split, Task},
    experience::{
        episode::{Episode, Purpose, Source},
        history::History,
    },
    rollout::{Chance, Played, Rollout, play},
    store::{
        StoreError, leases,
        rollouts::{self, Series},
    },
};

impl Worker {
    /// Keeps the episodes that were played. The unit is done with them, unless one of its episodes met a fault: then the
    /// unit is tried again, for those alone.
    pub(super) async fn finish(
        &self,
        mut tx: sqlx::Transaction<'static, sqlx::Postgres>,
        lease: &Lease,
        failed: Option<Fault>,
    ) -> Result<(), Fault> {
        if failed.is_none() {
            leases::complete(&mut tx, lease).await?;
        }
        tx.commit().await.map_err(StoreError::from)?;
        failed.map_or(Ok(()), Err)
    }

    /// Plays those of the ordinals that no earlier attempt has played, each by a seed of its own. Returns them, and the
    /// first fault that kept one from being played.
    pub(super) async fn play_missing(
        &self,
        context: &IterationContext,
        series: Series,
        ordinals: Range<u32>,
    ) -> Result<(Vec<(u32, Played)>, Option<Fault>), Fault> {
        // Every evaluation of a job plays the same tasks with the same chance, so that versions can be compared.
        let (split, seed, group) = match series.purpose {
            Purpose::Collect => {
                (Split::Train, context.seed("collect"), context.job.spec.rollout.group)
            }
            Purpose::Evaluate => (Split::HeldOut, chance(&context.job, "evaluate", 0), 1),
        };
        let there = rollouts::played(&mut *self.store.acquire().await?, series).await?;
        let sampler = context.sampler()?;
        let rollout = Rollout {
            sampler: &sampler,
            environment: &*context.environment,
            codec: &*context.codec,
            spec: &context.job.spec.rollout,
            temperature: series.temperature,
        };
        let task = &Task::Drawn(split);
        let playing =
            ordinals.filter(|ordinal| !there.contains(&ordinal.cast_signed())).map(|ordinal| {
                let of = |ordinal: u32| seed.index(u64::from(ordinal));
                // The seed of a group is that of its first episode.
                let chance =
                    Chance { environment: of(ordinal - ordinal % group), policy: of(ordinal) };
                let rollout = &rollout;
                async move { (ordinal, play(rollout, task, &chance).await) }
            });
        let (mut played, mut failed) = (Vec::new(), None);
        for (ordinal, outcome) in join_all(playing).await {
            match outcome {
                Ok(episode) => played.push((ordinal, episode)),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        Ok((played, failed))
    }

    pub(super) fn episode(
        &self,
        context: &IterationContext,
        played: &Played,
    ) -> Result<Episode, Fault> {
        Ok(Episode {
            id: EpisodeId::new(),
            source: Source::Rollout,
            environment: Some(context.environment.name().to_owned()),
            task: played.task.clone(),
            seed: Some(played.seed),
            checkpoint_id: context.online.as_ref().map(|checkpoint| checkpoint.id),
            model: None,
            history: History::of(&played.context),
            turns: i32::try_from(played.steps.len()).map_err(Fault::fail)?,
            end_reason: played.end_reason,
            episode_return: played.episode_return,
            reward_status: played.reward_status,
            success: played.success,
            truncated_by: played.truncated_by,
            error: played.error.clone(),
            created_at: self.clock.now(),
        })
    }
}

impl IterationContext {
    pub(super) fn series(&self, purpose: Purpose, temperature: f32) -> Series {
        let (job_id, iteration_id) = (self.job.id, self.iteration.id);
        Series { job_id, iteration_id, purpose, temperature }
    }
}
