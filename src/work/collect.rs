//! Playing episodes: to learn from, and to measure.

use std::ops::Range;

use futures_util::future::join_all;

use super::{
    Worker,
    context::{IterationContext, chance},
};
use crate::{
    domain::{
        fault::Fault,
        ids::{EpisodeId, TransitionId},
        work::Lease,
    },
    env::{Reward, Split, Task},
    experience::{
        episode::{EndReason, Episode, Purpose, RewardStatus, Source, Standing, Transition},
        history::{History, Place},
        message,
    },
    rollout::{Played, PlayedStep, Rollout, play},
    store::{
        StoreError, episodes, generations, replay,
        rollouts::{self, Series},
        search,
        spending::{self, Spending},
        transitions, work_items,
    },
};

impl Worker {
    /// Plays episodes with the adapter of a version; their steps enter replay.
    pub(super) async fn collect(
        &self,
        lease: &Lease,
        version: i32,
        first: u32,
        count: u32,
    ) -> Result<(), Fault> {
        let context = self.context(lease, |_| version).await?;
        let series = context.series(Purpose::Collect, context.job.spec.rollout.temperature);
        let (played, failed) = self.play_missing(&context, series, first..first + count).await?;

        let (mut ordinals, mut rows) = (Vec::new(), Vec::new());
        let (mut steps, mut entrants, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (ordinal, played) in &played {
            let episode = self.episode(&context, played)?;
            ordinals.push((ordinal.cast_signed(), episode.id));
            // An episode that failed trains nothing; one that was truncated keeps its steps.
            let kept = played.end_reason != EndReason::Failed;
            for (number, step) in (0..).zip(&played.steps).filter(|_| kept) {
                let (transition, standing) = transition(&episode, number, step)?;
                entrants.push(replay::Entrant {
                    transition_id: transition.id,
                    place: (context.iteration.index, ordinal.cast_signed(), number),
                    done: step.done,
                    pending: transition.reward_status == RewardStatus::Pending,
                });
                steps.push((transition, standing));
                texts.extend(&step.generation);
            }
            rows.push(episode);
        }
        let job = context.job.id;
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        generations::insert_many(&mut tx, job, context.iteration.id, texts).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        rollouts::insert_many(&mut tx, series, &ordinals).await?;
        transitions::insert_many(&mut tx, &steps).await?;
        replay::insert_many(&mut tx, job, &entrants).await?;
        let new: Vec<_> = entrants.iter().map(|entrant| entrant.transition_id).collect();
        search::refresh(&mut tx, job, &new).await?;
        let taken = Spending { env_steps: steps.len() as i64, ..Spending::default() };
        spending::add(&mut tx, context.iteration.id, taken).await?;
        self.finish(tx, lease, failed).await
    }

    /// Plays held-out episodes with the iteration's own adapter.
    pub(super) async fn evaluate(
        &self,
        lease: &Lease,
        temperature: f32,
        first: u32,
        count: u32,
    ) -> Result<(), Fault> {
        let context = self.context(lease, |iteration| iteration.index).await?;
        let series = context.series(Purpose::Evaluate, temperature);
        let (played, failed) = self.play_missing(&context, series, first..first + count).await?;
        let rows = played.iter().map(|(_, played)| self.episode(&context, played));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let ordinals = played.iter().map(|(ordinal, _)| ordinal.cast_signed());
        let ordinals: Vec<_> = ordinals.zip(rows.iter().map(|episode| episode.id)).collect();
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        rollouts::insert_many(&mut tx, series, &ordinals).await?;
        self.finish(tx, lease, failed).await
    }

    /// Keeps the episodes that were played. The unit is done with them, unless one of its episodes met a fault: then the
    /// unit is tried again, for those alone.
    async fn finish(
        &self,
        mut tx: sqlx::Transaction<'static, sqlx::Postgres>,
        lease: &Lease,
        failed: Option<Fault>,
    ) -> Result<(), Fault> {
        if failed.is_none() {
            work_items::complete(&mut tx, lease).await?;
        }
        tx.commit().await.map_err(StoreError::from)?;
        failed.map_or(Ok(()), Err)
    }

    /// Plays those of the ordinals that no earlier attempt has played, each by a seed of its own. Returns them, and the
    /// first fault that kept one from being played.
    async fn play_missing(
        &self,
        context: &IterationContext,
        series: Series,
        ordinals: Range<u32>,
    ) -> Result<(Vec<(u32, Played)>, Option<Fault>), Fault> {
        // Every evaluation of a job plays the same tasks with the same chance, so that versions can be compared.
        let (split, seed) = match series.purpose {
            Purpose::Collect => (Split::Train, context.seed("collect")),
            Purpose::Evaluate => (Split::HeldOut, chance(&context.job, "evaluate", 0)),
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
                let (rollout, seed) = (&rollout, seed.index(u64::from(ordinal)));
                async move { (ordinal, play(rollout, task, &seed).await) }
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

    fn episode(&self, context: &IterationContext, played: &Played) -> Result<Episode, Fault> {
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
    fn series(&self, purpose: Purpose, temperature: f32) -> Series {
        let (job_id, iteration_id) = (self.job.id, self.iteration.id);
        Series { job_id, iteration_id, purpose, temperature }
    }
}

fn transition(
    episode: &Episode,
    number: i32,
    step: &PlayedStep,
) -> Result<(Transition, Standing), Fault> {
    let transition = Transition {
        id: TransitionId::new(),
        episode_id: episode.id,
        step: number,
        action: step.action.written().into_owned(),
        env_action: step.key.clone(),
        observation: message::written(&step.observation),
        reward: step.reward.known(),
        reward_status: match step.reward {
            Reward::Known(_) => RewardStatus::Observed,
            Reward::Pending => RewardStatus::Pending,
        },
        done: step.done,
        truncated: step.truncated,
        generation_id: step.generation.as_ref().map(|g| g.id),
    };
    // Whoever plays in an environment has one context.
    let state = Place { context: 0, length: step.state.messages().len() };
    let next = Place { length: state.length + 1 + step.observation.len(), ..state };
    let standing = Standing::of(&episode.history, state, next).map_err(Fault::fail)?;
    Ok((transition, standing))
}
