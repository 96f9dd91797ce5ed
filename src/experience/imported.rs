//! A logged episode as the rows that it is stored as.

use time::OffsetDateTime;

use super::{
    episode::{EndReason, Episode, RewardStatus, Source, Standing, Transition, TruncatedBy},
    logged::{LoggedEpisode, LoggedStep},
    message,
};
use crate::domain::ids::{EpisodeId, TransitionId};

impl LoggedEpisode {
    /// The episode and its steps, stored at a time.
    ///
    /// # Errors
    /// A state that cannot be written as JSON.
    pub fn into_rows(
        self,
        now: OffsetDateTime,
    ) -> Result<(Episode, Vec<(Transition, Standing)>), serde_json::Error> {
        let id = EpisodeId::new();
        let numbered = (0..).zip(&self.steps);
        let steps = numbered.map(|(number, step)| self.row(id, number, step));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let (total, truncated) = (self.total(), self.truncated);
        let reward_status = match total {
            _ if truncated => RewardStatus::Truncated,
            None => RewardStatus::Pending,
            Some(_) => RewardStatus::Observed,
        };
        let episode = Episode {
            id,
            source: Source::Dataset,
            environment: None,
            task: self.task,
            seed: None,
            checkpoint_id: None,
            model: self.model,
            history: self.history,
            turns: i32::try_from(self.steps.len()).unwrap_or(i32::MAX),
            end_reason: if truncated { EndReason::Truncated } else { EndReason::Terminated },
            episode_return: total.filter(|_| !truncated),
            reward_status,
            success: self.success,
            truncated_by: truncated.then_some(TruncatedBy::Environment),
            error: None,
            created_at: now,
        };
        Ok((episode, steps))
    }

    fn row(
        &self,
        episode_id: EpisodeId,
        number: i32,
        step: &LoggedStep,
    ) -> Result<(Transition, Standing), serde_json::Error> {
        let acted = self.history.context(step.state).with([step.action.clone()]);
        let next = self.history.context(step.next);
        let last = usize::try_from(number).is_ok_and(|number| number + 1 == self.steps.len());
        let transition = Transition {
            id: TransitionId::new(),
            episode_id,
            step: number,
            action: step.action.written().into_owned(),
            env_action: None,
            observation: message::written(next.since(&acted)),
            reward: step.reward,
            reward_status: match step.reward {
                Some(_) => RewardStatus::Observed,
                None => RewardStatus::Pending,
            },
            done: last && !self.truncated,
            truncated: last && self.truncated,
            generation_id: None,
        };
        Ok((transition, Standing::of(&self.history, step.state, step.next)?))
    }
}
