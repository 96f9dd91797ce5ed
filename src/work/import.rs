//! Logged episodes become a job's own: the same rows as collected ones, without generations.

use super::{Worker, context::IterationContext};
use crate::{
    domain::{
        fault::Fault,
        ids::{EpisodeId, TransitionId},
        work::Lease,
    },
    experience::{
        episode::{EndReason, Episode, Purpose, RewardStatus, Transition, TruncatedBy},
        logged::LoggedEpisode,
        message,
        turns::turns,
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
        let context = self.context(lease, |iteration| iteration.base).await?;
        let mut conn = self.store.acquire().await?;
        let logged = datasets::slice(&mut conn, dataset, first, count).await?;
        drop(conn);
        let (mut rows, mut steps, mut entrants) = (Vec::new(), Vec::new(), Vec::new());
        for (ordinal, logged) in (FIRST + (offset + first).cast_signed()..).zip(&logged) {
            let episode = self.logged_episode(&context, logged, ordinal);
            for step in logged_steps(&context, &episode, logged)? {
                entrants.push(replay::Entrant {
                    transition_id: step.0.id,
                    place: (context.iteration.index, ordinal, step.0.step),
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
        replay::insert_many(&mut tx, context.job.id, &entrants).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }

    fn logged_episode(
        &self,
        context: &IterationContext,
        logged: &LoggedEpisode,
        ordinal: i32,
    ) -> Episode {
        let truncated = logged.truncated;
        Episode {
            id: EpisodeId::new(),
            job_id: context.job.id,
            iteration_id: context.iteration.id,
            purpose: Purpose::Import,
            ordinal,
            task: logged.task.clone(),
            seed: 0,
            checkpoint_id: None,
            temperature: 0.0,
            messages: logged.messages.clone(),
            tools: logged.tools.clone(),
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
    context: &IterationContext,
    episode: &Episode,
    logged: &LoggedEpisode,
) -> Result<Vec<(Transition, Vec<i32>)>, Fault> {
    let actions = logged.rewards.len();
    let mut steps = Vec::with_capacity(actions);
    for (number, (step, reward)) in
        turns(&logged.whole()).into_iter().zip(&logged.rewards).enumerate()
    {
        let prompt = context
            .prompts
            .policy()
            .render(&step.state, None, &serde_json::json!({}))
            .map_err(Fault::fail)?;
        let tokens = context.encoder.completion(&prompt, &step.action).map_err(Fault::fail)?;
        let last = number + 1 == actions;
        let length = step.state.messages().len();
        let transition = Transition {
            id: TransitionId::new(),
            job_id: episode.job_id,
            iteration_id: episode.iteration_id,
            episode_id: episode.id,
            step: i32::try_from(number).map_err(Fault::fail)?,
            state_len: i32::try_from(length).map_err(Fault::fail)?,
            next_len: i32::try_from(length + 1 + step.observation.len()).map_err(Fault::fail)?,
            action: step.action.written().into_owned(),
            env_action: context
                .codec
                .reread(&step.action, &step.state)
                .ok()
                .map(|action| action.key),
            observation: message::written(&step.observation),
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
