//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    environments_args::EnvironmentsArgs,
    evaluations_args::EvaluationsArgs,
    experience_args::{DatasetsArgs, EpisodesArgs},
    prompts_args::PromptsArgs,
    service_args::{
        CheckpointsArgs, JobsArgs, KeysArgs, OutputArgs, PeersArgs, ServiceArgs, TransitionsArgs,
    },
};
use crate::{
    app::{ServiceSettings, default_data_dir},
    domain::{
        access::Secret,
        ids::JobId,
        retention::{Keep, KeepVersions, Retention},
    },
    embedded::base_model::BaseModel,
    net::Allowed,
};

/// Trains LLM agents by Natural Language Actor-Critic.
///
/// Start with `nlac demo`: it needs nothing and learns in minutes. `nlac serve` runs the service for
/// your own jobs.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Roles.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service: REST API, page, scheduler, workers, and by default a private Postgres and the
    /// local engine and trainer.
    Serve(ServeArgs),
    /// Set everything up, train the example job, and show what it learnt.
    Demo(DemoArgs),
    /// Try every registered engine, trainer and environment end to end, and say what works, how fast, and what to change.
    Doctor(DoctorArgs),
    /// Keep the adapters of jobs under way in a directory beside an engine that shares no file system with
    /// the service.
    Sync(SyncArgs),
    /// Take logged episodes into a dataset of a running service, to learn from.
    Import(ImportArgs),
    /// Write what a job learnt from as training data for other tools: lines of JSON, or Parquet.
    Export(ExportArgs),
    /// Compare algorithms and settings over several seeds under equal budgets.
    Experiment(ExperimentArgs),
    /// Submit, watch, control and delete jobs of a running service.
    Jobs(JobsArgs),
    /// List, show and delete datasets.
    Datasets(DatasetsArgs),
    /// Show an episode, or give it a reward that arrives late.
    Episodes(EpisodesArgs),
    /// Read transitions with all that was said about them.
    Transitions(TransitionsArgs),
    /// List a job's checkpoints, or show one.
    Checkpoints(CheckpointsArgs),
    /// Let a checkpoint, a base model or a chat model play tasks, and show the results.
    Evaluations(EvaluationsArgs),
    /// List the registered engines.
    Engines(PeersArgs),
    /// List the registered trainers.
    Trainers(PeersArgs),
    /// List, show, register, check and delete environments.
    Environments(EnvironmentsArgs),
    /// List, show, try, push and delete prompt sets.
    Prompts(PromptsArgs),
    /// Print the completions of a shell, to be read by its start-up file.
    Completion {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Make, list and revoke the API keys of a running service.
    Keys(KeysArgs),
    /// Run the small CPU engine or trainer by itself.
    #[command(subcommand)]
    Local(LocalCommand),
    /// Bring the database's schema up to date and exit.
    Migrate(ServeArgs),
    /// Print the OpenAPI document of the REST API.
    Openapi,
}

/// Settings of the service.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Where the API and the page listen.
    #[arg(long, env = "NLAC_LISTEN", default_value = "127.0.0.1:8470")]
    pub listen: SocketAddr,
    /// Whether one must sign in with an API key; `auto` asks for it unless the address is a loopback one.
    #[arg(long, env = "NLAC_SIGN_IN", value_enum, default_value_t = SignInArg::Auto)]
    pub sign_in: SignInArg,
    /// The first admin key, at least 32 characters, used while no admin key works. Without it one is made and
    /// written to `admin-key` in the data directory.
    #[arg(long, env = "NLAC_ADMIN_KEY", hide_env_values = true, value_name = "KEY")]
    pub admin_key: Option<Secret>,
    /// Where everything is kept: database, adapters, models.
    #[arg(long, env = "NLAC_DATA_DIR", default_value_os_t = default_data_dir())]
    pub data_dir: PathBuf,
    /// The directory of the data files that environments read: a job names files relative to it.
    #[arg(long, env = "NLAC_ENVIRONMENT_DATA", value_name = "DIR")]
    pub environment_data: Option<PathBuf>,
    /// The server that checks answers for jobs whose environment says `checker: external`.
    #[arg(long, env = "NLAC_ANSWER_CHECKER", value_name = "URL")]
    pub answer_checker: Option<String>,
    /// A Postgres of yours; without it nlac runs a private one under the data directory.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Do not run the local engine and trainer.
    #[arg(long)]
    pub no_local: bool,
    /// The base model of the local engine and trainer: a Hugging Face model directory, served under the directory's
    /// name, or the name of one that ships, which are help-desk-base (the default), service-desk-base,
    /// tool-desk-base and playground-base.
    #[arg(long, env = "NLAC_BASE_MODEL", value_name = "DIR|NAME")]
    pub base_model: Option<BaseModel>,
    /// What the secrets of webhooks are made of: services that share a database need the same one. Without it
    /// one is kept under the data directory.
    #[arg(long, env = "NLAC_SERVICE_KEY", value_name = "KEY", hide_env_values = true)]
    pub service_key: Option<String>,
    /// A host name under which a proxy serves this service. While nobody has to sign in, requests for other hosts
    /// than these, `localhost` and IP addresses are refused, so that no web page can reach the service by a name
    /// of its own.
    #[arg(
        long = "allowed-host",
        env = "NLAC_ALLOWED_HOSTS",
        value_name = "HOST",
        value_delimiter = ','
    )]
    pub allowed_hosts: Vec<String>,
    /// A host, address or network (10.1.0.0/16) that webhooks may reach although it is not public.
    #[arg(long, env = "NLAC_WEBHOOK_ALLOW", value_name = "HOST", value_delimiter = ',')]
    pub webhook_allow: Vec<Allowed>,
    /// How many days entries of the audit log are kept, or `forever`.
    #[arg(long, env = "NLAC_KEEP_AUDIT", value_name = "DAYS", default_value_t = Retention::default().audit)]
    pub keep_audit: Keep,
    /// How many days deliveries of webhooks are kept once they arrived or were given up, or `forever`.
    #[arg(
        long,
        env = "NLAC_KEEP_DELIVERIES",
        value_name = "DAYS",
        default_value_t = Retention::default().deliveries
    )]
    pub keep_deliveries: Keep,
    /// How many days an episode may wait for a reward, or `forever`; then it expires.
    #[arg(long, env = "NLAC_REWARDS_WITHIN", value_name = "DAYS", default_value_t = Retention::default().rewards)]
    pub rewards_within: Keep,
    /// How many of the newest versions of each job keep their adapter and trainer state, or `all`. The best version,
    /// the promoted one and all that a job under way needs stay as well.
    #[arg(
        long,
        env = "NLAC_KEEP_VERSIONS",
        value_name = "NUMBER",
        default_value_t = Retention::default().versions
    )]
    pub keep_versions: KeepVersions,
    /// Compute threads of the local engine and trainer each; they change nothing but the time.
    #[arg(long, env = "NLAC_THREADS")]
    pub threads: Option<usize>,
}

impl From<ServeArgs> for ServiceSettings {
    fn from(args: ServeArgs) -> Self {
        let defaults = Self::default();
        Self {
            listen: args.listen,
            sign_in: match args.sign_in {
                SignInArg::Auto => None,
                SignInArg::On => Some(true),
                SignInArg::Off => Some(false),
            },
            admin_key: args.admin_key,
            data_dir: std::path::absolute(&args.data_dir).unwrap_or(args.data_dir),
            environment_data: args
                .environment_data
                .map(|dir| std::path::absolute(&dir).unwrap_or(dir)),
            answer_checker: args.answer_checker,
            database_url: args.database_url,
            durable: defaults.durable,
            local_peers: !args.no_local,
            base_model: args.base_model.unwrap_or_default(),
            service_key: args.service_key,
            peer_keys: defaults.peer_keys,
            allowed_hosts: args.allowed_hosts,
            webhook_allow: args.webhook_allow,
            retention: Retention {
                audit: args.keep_audit,
                deliveries: args.keep_deliveries,
                rewards: args.rewards_within,
                versions: args.keep_versions,
            },
            threads: args.threads.unwrap_or(defaults.threads).max(1),
        }
    }
}

/// Whether one must sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SignInArg {
    /// Unless only this machine can reach the service.
    Auto,
    /// Always.
    On,
    /// Never: whoever reaches the service may do everything.
    Off,
}

/// What is examined.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The service whose engines, trainers and environments are examined.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How findings are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// A directory that this machine and the engines see under the same path; an adapter lies there for
    /// the length of the examination.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    pub shared: PathBuf,
}

/// What is kept where.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// The engine, by its registered name; its registration's adapter_dir is DIR as the engine sees it.
    #[arg(long)]
    pub engine: String,
    /// A directory for this alone: what lies there and is wanted no more is removed.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1.0)]
    pub every: f64,
}

/// What the demo runs.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Settings of the service.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Seed of the job; the same seed learns the same.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Exit when the job is done, instead of serving on.
    #[arg(long)]
    pub exit: bool,
    /// Write the outcome as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Training algorithm.
    #[arg(long, value_enum, default_value_t = Algorithm::Nlac)]
    pub algorithm: Algorithm,
    /// Switch a part of the method off, to see what it does.
    #[arg(long, value_enum)]
    pub ablation: Option<AblationArg>,
    /// Iterations, instead of the example job's.
    #[arg(long)]
    pub iterations: Option<u32>,
    /// Keep the data of an earlier demo and go on with its job, as after a crash.
    #[arg(long)]
    pub resume: bool,
}

/// Algorithms of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    /// Natural Language Actor-Critic.
    Nlac,
    /// Values in words, and the best of several actions by them.
    Nlrl,
    /// Imitate one's own successes.
    RejectionFineTuning,
    /// An actor-critic whose critic says a number.
    ScalarCritic,
    /// A policy gradient from groups of episodes of one task.
    Grpo,
    /// A policy gradient from the values of a critic.
    Ppo,
    /// The base model acts, nothing is trained.
    Evaluation,
}

/// Ablations of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AblationArg {
    /// The successor model is never trained.
    UntrainedCritic,
    /// Each transition is refined by another one's critique.
    ShuffledCritiques,
    /// Targets come from endings alone: nothing is bootstrapped.
    TerminalTargets,
    /// Self-Distillation: real rollouts instead of predictions.
    RawRollouts,
    /// NLQL: the best of four actions by the critic, nothing is refined.
    BestOfActions,
}

/// Logged episodes.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// One JSON object per line: `messages` in chat format, and `rewards`, `return` or `success`; `-`
    /// reads standard input.
    pub file: PathBuf,
    /// The dataset; it is made if it is not there.
    #[arg(long)]
    pub dataset: String,
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How the outcome is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is written, and where.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The job.
    pub id: JobId,
    /// What the rows are.
    #[arg(long, value_enum, default_value_t = ExportForm::Transitions)]
    pub form: ExportForm,
    /// How they are written; without it, as the name of the file ends: `.parquet`, or anything else for JSON.
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// The file; `-` writes to standard output.
    #[arg(long, default_value = "-")]
    pub out: PathBuf,
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// A Parquet file with the same rows and fields.
    Parquet,
}

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Transitions, each with its newest critique and refinement.
    Transitions,
    /// Conversations that end with what the policy should say, for supervised fine-tuning.
    Sft,
    /// Refined against original actions, for preference training.
    Preferences,
}

/// Experiments.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ExperimentCommand,
}

/// What can be done with experiments.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Choose each arm's setting if the experiment says so, run every arm with every seed, and write tables and learning
    /// curves. Stopped and started again, it goes on where it was.
    Run(ExperimentRun),
}

/// What is run, and where.
#[derive(Debug, Args)]
pub struct ExperimentRun {
    /// An experiment, or a list of worlds with an experiment each, as in `experiments/`.
    pub file: PathBuf,
    /// Of several worlds only this one.
    #[arg(long)]
    pub world: Option<String>,
    /// Say how many runs there are and how long they take, and stop.
    #[arg(long)]
    pub estimate: bool,
    /// Where the table, the curves and the numbers are written.
    #[arg(long, default_value = "experiment")]
    pub out: PathBuf,
    /// Runs at a time.
    #[arg(long, default_value_t = 2)]
    pub parallel: usize,
    /// A running service; without it one is started for the time.
    #[arg(long, env = "NLAC_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// An API key of the running service, where it asks for one.
    #[arg(long, env = "NLAC_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<Secret>,
    /// Settings of the service that is started.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The local engine and trainer.
#[derive(Debug, Subcommand)]
pub enum LocalCommand {
    /// Serve a model directory with vLLM's protocol, run-time LoRA on.
    Engine(LocalArgs),
    /// Train LoRA adapters on a model directory, behind the Tinker API.
    Trainer {
        /// What to serve.
        #[command(flatten)]
        local: LocalArgs,
        /// Where states and adapters are saved.
        #[arg(long, default_value = "checkpoints")]
        checkpoints: PathBuf,
    },
}

/// What a local server serves, and where.
#[derive(Debug, Args)]
pub struct LocalArgs {
    /// A Hugging Face model directory; the base model that ships if none is given.
    #[arg(long)]
    pub model: Option<PathBuf>,
    /// The model's name on the wire.
    #[arg(long, default_value = crate::embedded::base_model::NAME)]
    pub name: String,
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8471")]
    pub listen: SocketAddr,
    /// Compute threads; they change nothing but the time.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
}
