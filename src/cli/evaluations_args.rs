//! Arguments of `nlac evaluations`.

use clap::{Args, Subcommand, ValueEnum};

use super::service_args::{OutputArgs, ServiceArgs};
use crate::domain::ids::{CheckpointId, JobId};

/// Evaluations.
#[derive(Debug, Args)]
pub struct EvaluationsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: EvaluationsCommand,
}

/// What can be done with evaluations.
#[derive(Debug, Subcommand)]
pub enum EvaluationsCommand {
    /// Let a checkpoint, a base model or a chat model play tasks, and show the results.
    ///
    /// The evaluation is a job of its own, which trains nothing. It plays the tasks that the checkpoint's job measures
    /// with, unless you say otherwise.
    Run(Box<RunArgs>),
    /// Show the results of a job's last evaluation. Jobs that train have one, too.
    Show {
        /// The job's id.
        job: JobId,
        /// Compare it with the last evaluation of this job, task by task.
        #[arg(long, value_name = "JOB")]
        against: Option<JobId>,
    },
}

/// An evaluation to run.
#[derive(Debug, Args)]
#[group(id = "of", required = true, multiple = true, args = ["checkpoint", "job"])]
pub struct RunArgs {
    /// The checkpoint that acts.
    #[arg(long, value_name = "ID")]
    pub checkpoint: Option<CheckpointId>,
    /// The job that environment, prompts and the rest are taken from, if it is not the checkpoint's. Without a
    /// checkpoint, its base model acts.
    #[arg(long, value_name = "ID")]
    pub job: Option<JobId>,
    /// Another engine. Without a checkpoint, its model acts: it may be a chat model.
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,
    /// Which tasks it plays.
    #[arg(long, value_enum, default_value_t = Tasks::HeldOut)]
    pub tasks: Tasks,
    /// How many tasks are drawn; as many as the job's full evaluations unless given.
    #[arg(long, value_name = "N")]
    pub count: Option<u32>,
    /// Episodes of each task: the results have pass^k for every k up to this.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub trials: u32,
    /// Sampling temperatures, separated by commas; those of the job unless given.
    #[arg(long, value_name = "T", value_delimiter = ',')]
    pub temperature: Vec<f32>,
    /// Every random choice follows from it; that of the job unless given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare it with the last evaluation of this job, task by task.
    #[arg(long, value_name = "JOB")]
    pub against: Option<JobId>,
    /// A name for people.
    #[arg(long)]
    pub name: Option<String>,
    /// Print the job and do not wait until it is over.
    #[arg(long)]
    pub detach: bool,
}

/// A part of an environment's tasks.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Tasks {
    /// Those that jobs measure with.
    HeldOut,
    /// Those that jobs learn from.
    Train,
}
