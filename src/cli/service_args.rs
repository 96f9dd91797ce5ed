//! Arguments of the commands that speak to a running service.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use crate::domain::{
    access::Secret,
    annotation::Verdict,
    ids::{CheckpointId, JobId, TransitionId},
    job::JobStatus,
};

/// Which service.
#[derive(Debug, Clone, Args)]
pub struct ServiceArgs {
    /// The service.
    #[arg(
        long,
        env = "NLAC_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8470",
        global = true
    )]
    pub server: String,
    /// An API key, where the service asks for one; better in the environment than on the command line.
    #[arg(long, env = "NLAC_API_KEY", hide_env_values = true, value_name = "KEY", global = true)]
    pub api_key: Option<Secret>,
}

/// How answers are printed.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Control of jobs.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: JobsCommand,
}

/// What can be done with jobs.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Submit a job spec.
    Submit(SubmitArgs),
    /// List jobs, newest first.
    List {
        /// Only those in this status.
        #[arg(long)]
        status: Option<JobStatus>,
        /// Only those with this as a part of their name or id.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Only those that a key of this name submitted.
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Most rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// Show one job.
    Show {
        /// Its id.
        id: JobId,
    },
    /// Follow a job until it is over; fails if the job fails.
    Watch {
        /// Its id.
        id: JobId,
    },
    /// Stop claiming work; what is under way finishes.
    Pause {
        /// Its id.
        id: JobId,
    },
    /// Resume a job that was paused, or that failed and whose cause is mended.
    Resume {
        /// Its id.
        id: JobId,
    },
    /// Stop for good.
    Cancel {
        /// Its id.
        id: JobId,
    },
    /// Delete a job that is over.
    ///
    /// The service also deletes the job's checkpoints and their files, its annotations, and the episodes that nothing else
    /// links.
    Delete {
        /// Its id.
        id: JobId,
    },
}

/// A spec, and what becomes of it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("instead").args(["estimate", "dry_run"]).conflicts_with_all(["watch", "key"])))]
pub struct SubmitArgs {
    /// A YAML or JSON file; `-` reads standard input.
    pub file: PathBuf,
    /// Submit nothing: check the spec as a submission would, and say what the job would take.
    #[arg(long)]
    pub estimate: bool,
    /// Submit nothing: check the spec as a submission would.
    #[arg(long)]
    pub dry_run: bool,
    /// Follow the job until it is over.
    #[arg(long)]
    pub watch: bool,
    /// The same key submits once, however often it is tried.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Control of API keys.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key and print it, this once.
    Create {
        /// Whose it is: a person or a program. Jobs and the audit log call them so.
        name: String,
        /// What it may do besides reading; several times or with commas. `admin` may do all.
        #[arg(
            long = "scope",
            value_name = "SCOPE",
            value_delimiter = ',',
            default_value = "submit",
            value_parser = ["read", "submit", "operate", "admin"]
        )]
        scopes: Vec<String>,
        /// Days until it ends by itself; without it, it does not.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
        /// Requests that it may make in a minute.
        #[arg(long, value_name = "MOST", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        requests_per_minute: Option<u32>,
    },
    /// List keys, newest first, each with what it may do and when it was last used.
    List {
        /// Those too that were revoked or have expired.
        #[arg(long)]
        all: bool,
    },
    /// Revoke a key, at once and for good.
    Revoke {
        /// Its id, or its name.
        key: String,
    },
}

/// Transitions.
#[derive(Debug, Args)]
pub struct TransitionsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: TransitionsCommand,
}

/// What can be done with transitions.
#[derive(Debug, Subcommand)]
pub enum TransitionsCommand {
    /// Show one: state, action, prediction, what came, target, critique, and what the refinement changed.
    Show {
        /// Its id.
        id: TransitionId,
        /// As this job annotated it; as the newest job that learns from it unless given.
        #[arg(long, value_name = "ID")]
        job: Option<JobId>,
    },
    /// Find transitions by what was said about them, newest first.
    Search(SearchArgs),
}

/// Which transitions.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words in action, newest critique or newest refinement; quotes hold a phrase together, `or` and `-`
    /// mean what they say.
    #[arg(value_name = "TEXT")]
    pub words: Vec<String>,
    /// Only those of this job.
    #[arg(long, value_name = "ID")]
    pub job: Option<JobId>,
    /// Only those whose newest verdict is this: yes, no or unparseable.
    #[arg(long)]
    pub verdict: Option<Verdict>,
    /// Only those of episodes that were solved, or were not.
    #[arg(long, value_name = "true|false")]
    pub success: Option<bool>,
    /// Only those whose newest refinement changed the action, or did not.
    #[arg(long, value_name = "true|false")]
    pub changed: Option<bool>,
    /// Most rows.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
}

/// Checkpoints.
#[derive(Debug, Args)]
pub struct CheckpointsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: CheckpointsCommand,
}

/// What can be done with checkpoints.
#[derive(Debug, Subcommand)]
pub enum CheckpointsCommand {
    /// List a job's checkpoints, newest first.
    List {
        /// The job's id.
        job: JobId,
    },
    /// Show one checkpoint.
    Show {
        /// Its id.
        id: CheckpointId,
    },
}

/// Registered engines or trainers.
#[derive(Debug, Args)]
pub struct PeersArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: PeersCommand,
}

/// What can be done with engines and trainers.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum PeersCommand {
    /// List them, with what each was found to be able to do.
    List,
}
