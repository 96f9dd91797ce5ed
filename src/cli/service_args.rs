//! Arguments of the commands that call a running service.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;

use crate::domain::{
    access::Secret,
    annotation::Verdict,
    ids::{CheckpointId, JobId, TransitionId},
    job::JobStatus,
};

/// The service.
#[derive(Debug, Clone, Args)]
pub struct ServiceArgs {
    /// URL of the service.
    #[arg(
        long,
        env = "NLAC_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8470",
        global = true
    )]
    pub server: String,
    /// API key, if the service requires one. Prefer the environment variable to the command line.
    #[arg(long, env = "NLAC_API_KEY", hide_env_values = true, value_name = "KEY", global = true)]
    pub api_key: Option<Secret>,
}

/// Output format.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Control of jobs.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: JobsCommand,
}

/// Commands of `nlac jobs`.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Submit a job spec.
    Submit(SubmitArgs),
    /// List jobs, newest first.
    List {
        /// Only jobs with this status.
        #[arg(long)]
        status: Option<JobStatus>,
        /// Only jobs whose name or id contains this text.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Only jobs that a key of this name submitted.
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// Show one job.
    Show {
        /// Id of the job.
        id: JobId,
    },
    /// Follow a job until it ends. Fails if the job fails.
    Watch {
        /// Id of the job.
        id: JobId,
    },
    /// Pause a job. Running work finishes.
    Pause {
        /// Id of the job.
        id: JobId,
    },
    /// Resume a paused job, or a failed job after you fixed the cause.
    Resume {
        /// Id of the job.
        id: JobId,
    },
    /// Raise the budget of a job. A job that has succeeded continues from its last checkpoint.
    Extend {
        /// Id of the job.
        id: JobId,
        #[command(flatten)]
        budget: Limits,
    },
    /// Cancel a job for good.
    Cancel {
        /// Id of the job.
        id: JobId,
    },
    /// Delete a finished job.
    ///
    /// The service also deletes the job's checkpoints with their files, its annotations, and the episodes
    /// that no other job or dataset uses.
    Delete {
        /// Id of the job.
        id: JobId,
    },
}

/// Arguments of `nlac jobs submit`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("instead").args(["estimate", "dry_run"]).conflicts_with_all(["watch", "key"])))]
pub struct SubmitArgs {
    /// A YAML or JSON file; `-` reads standard input.
    pub file: PathBuf,
    /// Submit nothing. Check the spec and estimate the cost of the job.
    #[arg(long)]
    pub estimate: bool,
    /// Submit nothing. Check the spec as a submission would.
    #[arg(long)]
    pub dry_run: bool,
    /// Follow the job until it ends.
    #[arg(long)]
    pub watch: bool,
    /// Idempotency key. Repeating the command with the same key submits one job.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Control of API keys.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// Commands of `nlac keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create an API key and print it. It is shown only once.
    Create {
        /// Name of the person or the program that uses the key. It appears in jobs and in the audit log.
        name: String,
        /// What the key may do besides reading. Repeat the option or separate scopes by commas. `admin`
        /// includes all scopes.
        #[arg(
            long = "scope",
            value_name = "SCOPE",
            value_delimiter = ',',
            default_value = "submit",
            value_parser = ["read", "submit", "operate", "admin"]
        )]
        scopes: Vec<String>,
        /// Days until the key expires. By default it never expires.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
        /// Maximum number of requests per minute.
        #[arg(long, value_name = "MOST", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        requests_per_minute: Option<u32>,
    },
    /// List API keys, newest first, with their scopes and their last use.
    List {
        /// Include revoked and expired keys.
        #[arg(long)]
        all: bool,
    },
    /// Revoke an API key at once and for good.
    Revoke {
        /// Id or name of the key.
        key: String,
    },
}

/// Transitions.
#[derive(Debug, Args)]
pub struct TransitionsArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: TransitionsCommand,
}

/// Commands of `nlac transitions`.
#[derive(Debug, Subcommand)]
pub enum TransitionsCommand {
    /// Show a transition: state, action, prediction, observation, Bellman target, critique and refinement.
    Show {
        /// Id of the transition.
        id: TransitionId,
        /// Show the annotations of this job. The default is the newest job that learns from the transition.
        #[arg(long, value_name = "ID")]
        job: Option<JobId>,
    },
    /// Search transitions, newest first.
    Search(SearchArgs),
}

/// Filters of a search.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words in the action, the newest critique or the newest refinement. Use quotes for a phrase, `or` for
    /// alternatives and `-` to exclude a word.
    #[arg(value_name = "TEXT")]
    pub words: Vec<String>,
    /// Only transitions of this job.
    #[arg(long, value_name = "ID")]
    pub job: Option<JobId>,
    /// Only transitions whose newest verdict is this: yes, no or unparseable.
    #[arg(long)]
    pub verdict: Option<Verdict>,
    /// Only transitions of solved episodes (true) or of failed ones (false).
    #[arg(long, value_name = "true|false")]
    pub success: Option<bool>,
    /// Only transitions whose newest refinement changed the action (true) or kept it (false).
    #[arg(long, value_name = "true|false")]
    pub changed: Option<bool>,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
}

/// Checkpoints.
#[derive(Debug, Args)]
pub struct CheckpointsArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: CheckpointsCommand,
}

/// Commands of `nlac checkpoints`.
#[derive(Debug, Subcommand)]
pub enum CheckpointsCommand {
    /// List a job's checkpoints, newest first.
    List {
        /// Id of the job.
        job: JobId,
    },
    /// Show one checkpoint.
    Show {
        /// Id of the checkpoint.
        id: CheckpointId,
    },
}

/// Registered engines or trainers.
#[derive(Debug, Args)]
pub struct PeersArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: PeersCommand,
}

/// Commands of `nlac engines` and `nlac trainers`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum PeersCommand {
    /// List them with their capabilities.
    List,
}

/// Limits of a budget. Limits that are not given stay.
#[derive(Debug, Clone, Args, Serialize)]
#[group(required = true, multiple = true)]
pub struct Limits {
    /// Iterations in all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Optimizer steps in all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer_steps: Option<u64>,
    /// Environment steps in all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_steps: Option<u64>,
    /// Tokens generated and trained on in all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Seconds since the job started.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<u64>,
}
