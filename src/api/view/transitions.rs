//! Transitions, as they are sent.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::{
        annotation::Verdict,
        ids::{EpisodeId, GenerationId, JobId, TransitionId},
    },
    experience::{chat::ChatMessage, episode::RewardStatus, message::Message},
    store::read::transitions::TransitionRow,
};

/// A transition as it is shown, with the newest annotation of a job that learns from it.
#[derive(Serialize, ToSchema)]
pub struct TransitionView {
    /// Its id.
    pub id: TransitionId,
    /// The job whose annotation the later fields show; null where no job learns from it.
    pub job_id: Option<JobId>,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Number of the job's iteration in which it entered replay.
    pub iteration: Option<i32>,
    /// Its place in the episode.
    pub step: i32,
    /// Which of the episode's contexts the policy saw, from 0.
    pub context: i32,
    /// The conversation before the action.
    #[schema(value_type = Vec<ChatMessage>)]
    pub state: Vec<Message>,
    /// The policy's reply.
    pub action: String,
    /// The part of it that reached the environment; null when it could not be read, and for imported steps.
    pub env_action: Option<String>,
    /// What the environment answered.
    pub observation: String,
    /// Reward; null unless observed.
    pub reward: Option<f64>,
    /// Why it is there or not.
    pub reward_status: RewardStatus,
    /// The task ended here.
    pub done: bool,
    /// The episode was cut here.
    pub truncated: bool,
    /// The generation that is the action; null for imported steps.
    pub generation_id: Option<GenerationId>,
    /// Log-probability that the policy gave the action among the admissible ones, natural log, at temperature 1; null
    /// where it wrote freely.
    pub choice_logprob: Option<f64>,
    /// Actions that were possible; none where the environment does not say.
    pub admissible: Vec<String>,
    /// Actions that were possible after the step.
    pub next_admissible: Vec<String>,
    /// Goals that the step achieved, where the environment says so.
    pub achieved_goals: Vec<String>,
    /// Critic loss per token when the job last learnt from it, nats; its priority in replay.
    pub loss: Option<f32>,
    /// How often the job learnt from it.
    pub uses: Option<i32>,
    /// Whether its episode was solved; null unless somebody said so.
    pub success: Option<bool>,
    /// The iteration whose annotation the next fields show: the newest that judged the action. They belong together: a
    /// refinement is what the rounds after this critique came to.
    pub annotated_in: Option<i32>,
    /// Its verdict on the action.
    pub verdict: Option<Verdict>,
    /// Its critique of the action.
    pub critique: Option<String>,
    /// What it refined the action to, after the last round; null where it approved of the action.
    pub refinement: Option<String>,
    /// Whether the environment can read the refinement.
    pub valid: Option<bool>,
    /// Whether the refinement is another text than the action.
    pub changed: Option<bool>,
}

impl From<TransitionRow> for TransitionView {
    fn from(row: TransitionRow) -> Self {
        Self {
            id: row.id,
            job_id: row.job_id,
            episode_id: row.episode_id,
            iteration: row.iteration,
            step: row.step,
            context: row.context,
            state: row.state,
            action: row.action,
            env_action: row.env_action,
            observation: row.observation,
            reward: row.reward,
            reward_status: row.reward_status,
            done: row.done,
            truncated: row.truncated,
            generation_id: row.generation_id,
            choice_logprob: row.choice_logprob,
            admissible: row.admissible,
            next_admissible: row.next_admissible,
            achieved_goals: row.achieved_goals,
            loss: row.loss,
            uses: row.uses,
            success: row.success,
            annotated_in: row.annotated_in,
            verdict: row.verdict,
            critique: row.critique,
            refinement: row.refinement,
            valid: row.valid,
            changed: row.changed,
        }
    }
}
