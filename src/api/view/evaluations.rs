//! Results of evaluations, as the API sends them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::ids::{CheckpointId, JobId},
    evaluation::{Difference, Evaluation},
    quantity::Summary,
};

/// The last evaluation of a job that is complete.
#[derive(Serialize, ToSchema)]
pub struct EvaluationView {
    /// The job.
    pub job_id: JobId,
    /// The checkpoint that acted; null where a model acted that no checkpoint is of.
    pub checkpoint_id: Option<CheckpointId>,
    /// The iteration that played it.
    pub iteration: i32,
    /// The job that it is compared with.
    pub against: Option<JobId>,
    /// Its results, one for each temperature, lowest first.
    pub results: Vec<ResultView>,
}

/// Results at one temperature. Each mean is over tasks; the value of a task is the mean over its episodes.
#[derive(Serialize, ToSchema)]
pub struct ResultView {
    /// Sampling temperature of the policy; 0 is greedy.
    pub temperature: f32,
    /// Episodes that were played.
    pub episodes: u64,
    /// Those of them of which nobody knows whether they solved their task: they failed, or wait for a reward. They do
    /// not count.
    pub unjudged: u64,
    /// The share of episodes that solve their task; null where nothing is known.
    pub success: Option<MeanView>,
    /// The return of an episode; null where nothing is known.
    pub mean_return: Option<MeanView>,
    /// pass^k for k from 1: the chance that k episodes of a task all solve it (arXiv 2406.12045). Tasks with fewer
    /// episodes than k do not count; null where there is none with as many.
    pub pass_hat: Vec<Option<MeanView>>,
    /// By how much these results exceed those of the other job's last evaluation at the same temperature, task by task;
    /// null without one.
    pub difference: Option<DifferenceView>,
}

/// A mean over tasks.
#[derive(Serialize, ToSchema)]
pub struct MeanView {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student's t over tasks); null for one task.
    pub margin: Option<f64>,
    /// The tasks.
    pub tasks: usize,
}

/// By how much the results of one evaluation exceed those of another, on the tasks that both played.
#[derive(Serialize, ToSchema)]
pub struct DifferenceView {
    /// In the share of episodes that solve their task.
    pub success: Option<MeanView>,
    /// In the return of an episode.
    pub mean_return: Option<MeanView>,
}

impl ResultView {
    pub fn new(evaluation: &Evaluation, trials: u32, other: Option<&[Evaluation]>) -> Self {
        let other = other.and_then(|all| evaluation.counterpart(all));
        Self {
            temperature: evaluation.temperature,
            episodes: evaluation.episodes(),
            unjudged: evaluation.unjudged(),
            success: evaluation.success().map(MeanView::from),
            mean_return: evaluation.mean_return().map(MeanView::from),
            pass_hat: evaluation.pass_hat(trials).into_iter().map(|k| k.map(Into::into)).collect(),
            difference: other.map(|other| evaluation.difference(other).into()),
        }
    }
}

impl From<Summary> for MeanView {
    fn from(Summary { n, mean, margin, .. }: Summary) -> Self {
        Self { mean, margin, tasks: n }
    }
}

impl From<Difference> for DifferenceView {
    fn from(Difference { success, mean_return }: Difference) -> Self {
        Self { success: success.map(Into::into), mean_return: mean_return.map(Into::into) }
    }
}
