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
        episode::{EndReason, Episode, Purpose, RewardStatus, Transition},
        message,
    },
    rollout::{Played, PlayedStep, Rollout, play},
    store::{
        StoreError, episodes, generations, replay, search,
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
        let temperature = context.job.spec.rollout.temperature;
        let (played, failed) = self
            .play_missing(&context, Purpose::Collect, temperature, first..first + count)
            .await?;

        let (mut rows, mut steps, mut entrants) = (Vec::new(), Vec::new(), Vec::new());
        let mut texts = Vec::new();
        for (ordinal, played) in &played {
            let episode =
                self.episode(&context, played, Purpose::Collect, temperature, *ordinal)?;
            // An episode that failed trains nothing; one that was truncated keeps its steps.
            let kept = played.end_reason != EndReason::Failed;
            for (number, step) in (0..).zip(&played.steps).filter(|_| kept) {
                let transition = transition(&episode, number, step);
                entrants.push(replay::Entrant {
                    transition_id: transition.id,
                    place: (context.iteration.index, episode.ordinal, number),
                    done: step.done,
                });
                steps.push(transition);
                texts.extend(&step.generation);
            }
            rows.push(episode);
        }
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        generations::insert_many(&mut tx, context.job.id, context.iteration.id, texts).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        transitions::insert_many(&mut tx, &steps).await?;
        search::refresh(&mut tx, &steps.iter().map(|step| step.id).collect::<Vec<_>>()).await?;
        replay::insert_many(&mut tx, context.job.id, &entrants).await?;
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
        let (played, failed) = self
            .play_missing(&context, Purpose::Evaluate, temperature, first..first + count)
            .await?;
        let rows = played
            .iter()
            .map(|(ordinal, p)| self.episode(&context, p, Purpose::Evaluate, temperature, *ordinal))
            .collect::<Result<Vec<_>, _>>()?;
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        episodes::insert_many(&mut tx, &rows).await?;
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
        purpose: Purpose,
        temperature: f32,
        ordinals: Range<u32>,
    ) -> Result<(Vec<(u32, Played)>, Option<Fault>), Fault> {
        let (split, label) = match purpose {
            Purpose::Collect | Purpose::Import => (Split::Train, "collect"),
            Purpose::Evaluate => (Split::HeldOut, "evaluate"),
        };
        let mut conn = self.store.acquire().await?;
        let there = episodes::played(&mut conn, context.iteration.id, purpose, temperature).await?;
        drop(conn);
        let sampler = context.sampler()?;
        let rollout = Rollout {
            sampler: &sampler,
            environment: &*context.environment,
            codec: &*context.codec,
            spec: &context.job.spec.rollout,
            temperature,
        };
        let task = &Task::Drawn(split);
        // Every evaluation of a job plays the same tasks with the same chance, so that versions can be compared.
        let seed = match purpose {
            Purpose::Evaluate => chance(&context.job, label, 0),
            Purpose::Collect | Purpose::Import => context.seed(label),
        };
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

    fn episode(
        &self,
        context: &IterationContext,
        played: &Played,
        purpose: Purpose,
        temperature: f32,
        ordinal: u32,
    ) -> Result<Episode, Fault> {
        Ok(Episode {
            id: EpisodeId::new(),
            job_id: context.job.id,
            iteration_id: context.iteration.id,
            purpose,
            ordinal: ordinal.cast_signed(),
            task: played.task.clone(),
            seed: played.seed,
            checkpoint_id: context.online.as_ref().map(|checkpoint| checkpoint.id),
            temperature,
            messages: played.context.messages().to_vec(),
            tools: played.context.frame().tools.clone(),
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

fn transition(episode: &Episode, number: i32, step: &PlayedStep) -> Transition {
    let state_len = step.state.messages().len();
    let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    Transition {
        id: TransitionId::new(),
        job_id: episode.job_id,
        iteration_id: episode.iteration_id,
        episode_id: episode.id,
        step: number,
        state_len: length(state_len),
        next_len: length(state_len + 1 + step.observation.len()),
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
    }
}
