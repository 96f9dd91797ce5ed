//! Logged episodes become a job's own: the same rows as collected ones, without generations.

use super::{Worker, scene::Scene};
use crate::{
    domain::{
        episode::{EndReason, Episode, Purpose, RewardStatus, Transition, TruncatedBy},
        fault::Fault,
        ids::{EpisodeId, TransitionId},
        logged::LoggedEpisode,
        work::Lease,
    },
    store::{StoreError, datasets, episodes, replay, search, transitions, work_items},
};

/// Ordinals of imported episodes begin here, past those that any iteration collects.
const FIRST: i32 = 1_000_000;

impl Worker {
    /// Takes over `count` episodes of a dataset.
    pub(super) async fn import(
        &self,
        lease: &Lease,
        dataset: &str,
        (offset, first, count): (u32, u32, u32),
    ) -> Result<(), Fault> {
        let scene = self.scene(lease, |iteration| iteration.base).await?;
        let mut conn = self.store.acquire().await?;
        let logged = datasets::slice(&mut conn, dataset, first, count).await?;
        drop(conn);
        let (mut rows, mut steps, mut entrants) = (Vec::new(), Vec::new(), Vec::new());
        for (ordinal, logged) in (FIRST + (offset + first).cast_signed()..).zip(&logged) {
            let episode = self.logged_episode(&scene, logged, ordinal);
            for step in logged_steps(&scene, &episode, logged)? {
                entrants.push(replay::Entrant {
                    transition_id: step.0.id,
                    place: (scene.iteration.index, ordinal, step.0.step),
                    done: step.0.done,
                });
                steps.push(step);
            }
            rows.push(episode);
        }
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        episodes::insert_many(&mut tx, &rows).await?;
        transitions::insert_imported(&mut tx, &steps).await?;
        search::refresh(&mut tx, &steps.iter().map(|step| step.0.id).collect::<Vec<_>>()).await?;
        replay::insert_many(&mut tx, scene.job.id, &entrants).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }

    fn logged_episode(&self, scene: &Scene, logged: &LoggedEpisode, ordinal: i32) -> Episode {
        let truncated = logged.truncated;
        Episode {
            id: EpisodeId::new(),
            job_id: scene.job.id,
            iteration_id: scene.iteration.id,
            purpose: Purpose::Import,
            ordinal,
            task: logged.task.clone(),
            seed: 0,
            checkpoint_id: None,
            temperature: 0.0,
            messages: logged.messages.clone(),
            turns: i32::try_from(logged.rewards.len()).unwrap_or(i32::MAX),
            end_reason: if truncated { EndReason::Truncated } else { EndReason::Terminated },
            episode_return: (!truncated).then(|| logged.total()),
            reward_status: if truncated { RewardStatus::Truncated } else { RewardStatus::Observed },
            success: logged.success,
            truncated_by: truncated.then_some(TruncatedBy::Environment),
            error: None,
            created_at: self.clock.now(),
        }
    }
}

/// Each action with its tokens.
fn logged_steps(
    scene: &Scene,
    episode: &Episode,
    logged: &LoggedEpisode,
) -> Result<Vec<(Transition, Vec<i32>)>, Fault> {
    let actions = logged.rewards.len();
    let mut steps = Vec::with_capacity(actions);
    for (number, reward) in logged.rewards.iter().enumerate() {
        let state_len = logged.opening + 2 * number;
        let [action, observation] = &logged.messages[state_len..state_len + 2] else { break };
        let prompt = scene
            .prompts
            .policy()
            .render(&logged.messages[..state_len], None, &serde_json::json!({}))
            .map_err(Fault::fail)?;
        let tokens = scene.encoder.completion(&prompt, &action.content).map_err(Fault::fail)?;
        let last = number + 1 == actions;
        let transition = Transition {
            id: TransitionId::new(),
            job_id: episode.job_id,
            iteration_id: episode.iteration_id,
            episode_id: episode.id,
            step: i32::try_from(number).map_err(Fault::fail)?,
            state_len: i32::try_from(state_len).map_err(Fault::fail)?,
            action: action.content.clone(),
            env_action: scene.environment.parse_action(&action.content),
            observation: observation.content.clone(),
            reward: Some(*reward),
            reward_status: RewardStatus::Observed,
            done: last && !logged.truncated,
            truncated: last && logged.truncated,
            generation_id: None,
        };
        steps.push((transition, tokens.into_iter().map(u32::cast_signed).collect()));
    }
    Ok(steps)
}
