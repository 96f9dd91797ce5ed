//! Playing episodes: to learn from, and to measure.

use futures_util::future::try_join_all;

use super::{Worker, scene::Scene};
use crate::{
    domain::{
        episode::{Episode, Purpose, RewardStatus, Transition},
        fault::Fault,
        ids::{EpisodeId, TransitionId},
        work::Lease,
    },
    env::Split,
    rollout::{Played, PlayedStep, Stage, play},
    store::{episodes, generations, replay, search, transitions, work_items},
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
        let scene = self.scene(lease, |_| version).await?;
        let temperature = scene.job.spec.rollout.temperature;
        let played =
            self.play_many(&scene, Split::Train, "collect", temperature, first, count).await?;

        let (mut rows, mut steps, mut entrants) = (Vec::new(), Vec::new(), Vec::new());
        let mut texts = Vec::new();
        for (ordinal, played) in (first..).zip(&played) {
            let episode = self.episode(&scene, played, Purpose::Collect, temperature, ordinal)?;
            // What failed or was cut before its end trains nothing.
            let whole = played.error.is_none();
            for (number, step) in (0..).zip(&played.steps).filter(|_| whole) {
                let transition = transition(&episode, number, step);
                entrants.push(replay::Entrant {
                    transition_id: transition.id,
                    place: (scene.iteration.index, episode.ordinal, number),
                    done: step.done,
                });
                steps.push(transition);
                texts.extend(&step.generation);
            }
            rows.push(episode);
        }
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        generations::insert_many(&mut tx, scene.job.id, scene.iteration.id, texts).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        transitions::insert_many(&mut tx, &steps).await?;
        search::refresh(&mut tx, &steps.iter().map(|step| step.id).collect::<Vec<_>>()).await?;
        replay::insert_many(&mut tx, scene.job.id, &entrants).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| crate::store::StoreError::from(e).into())
    }

    /// Plays held-out episodes with the iteration's own adapter.
    pub(super) async fn evaluate(
        &self,
        lease: &Lease,
        temperature: f32,
        first: u32,
        count: u32,
    ) -> Result<(), Fault> {
        let scene = self.scene(lease, |iteration| iteration.index).await?;
        let played =
            self.play_many(&scene, Split::HeldOut, "evaluate", temperature, first, count).await?;
        let rows = (first..)
            .zip(&played)
            .map(|(ordinal, p)| self.episode(&scene, p, Purpose::Evaluate, temperature, ordinal))
            .collect::<Result<Vec<_>, _>>()?;
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| crate::store::StoreError::from(e).into())
    }

    async fn play_many(
        &self,
        scene: &Scene,
        split: Split,
        purpose: &str,
        temperature: f32,
        first: u32,
        count: u32,
    ) -> Result<Vec<Played>, Fault> {
        let cast = scene.cast()?;
        let stage = Stage {
            cast: &cast,
            environment: &*scene.environment,
            split,
            rollout: &scene.job.spec.rollout,
            temperature,
        };
        let seed = scene.seed(purpose);
        let seeds: Vec<_> = (first..first + count).map(|o| seed.index(u64::from(o))).collect();
        try_join_all(seeds.iter().map(|seed| play(&stage, seed))).await
    }

    fn episode(
        &self,
        scene: &Scene,
        played: &Played,
        purpose: Purpose,
        temperature: f32,
        ordinal: u32,
    ) -> Result<Episode, Fault> {
        Ok(Episode {
            id: EpisodeId::new(),
            job_id: scene.job.id,
            iteration_id: scene.iteration.id,
            purpose,
            ordinal: ordinal.cast_signed(),
            task: played.task.clone(),
            seed: played.seed,
            checkpoint_id: scene.online.as_ref().map(|checkpoint| checkpoint.id),
            temperature,
            messages: played.messages.clone(),
            turns: i32::try_from(played.steps.len()).map_err(Fault::fail)?,
            end_reason: played.end_reason,
            episode_return: played.episode_return,
            reward_status: played.reward_status,
            success: played.success,
            error: played.error.clone(),
            created_at: self.clock.now(),
        })
    }
}

fn transition(episode: &Episode, number: i32, step: &PlayedStep) -> Transition {
    Transition {
        id: TransitionId::new(),
        job_id: episode.job_id,
        iteration_id: episode.iteration_id,
        episode_id: episode.id,
        step: number,
        state_len: i32::try_from(step.state_len).unwrap_or(i32::MAX),
        action: step.reply.clone(),
        env_action: step.env_action.clone(),
        observation: step.observation.clone(),
        reward: Some(step.reward),
        reward_status: RewardStatus::Observed,
        done: step.done,
        truncated: step.truncated,
        generation_id: step.generation.as_ref().map(|g| g.id),
    }
}
