//! Arguments of `nlac environments`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::service_args::{OutputArgs, ServiceArgs};

/// Environments.
#[derive(Debug, Args)]
pub struct EnvironmentsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: EnvironmentsCommand,
}

/// What can be done with environments.
#[derive(Debug, Subcommand)]
pub enum EnvironmentsCommand {
    /// List the built-in and the registered environments: their state, and what they can do.
    List,
    /// Show an environment, and how a job names it.
    Show {
        /// Name of the environment.
        name: String,
    },
    /// Register an OpenEnv server, or change its registration.
    ///
    /// The service asks the server what it is, and the answer is printed. A setting that is not given has its default,
    /// also where the registration had another value. `nlac environments check NAME` then tries what jobs rely on.
    Put(PutArgs),
    /// Delete a registration. Episodes that were played there stay.
    ///
    /// The service rejects this while a job that is not over plays there.
    Delete {
        /// Name of the environment.
        name: String,
    },
    /// Play episodes on a registered environment, and report what a job would suffer from.
    ///
    /// This command plays from where it runs, not through the service. It checks that episodes begin and end, that
    /// rewards vary, that the same task, seed and actions give the same episode, that no held-out task occurs in
    /// training, that steps are fast, and that the server has as many sessions as are registered. Every check that fails
    /// says what to change. The exit status is then 1.
    Check(CheckArgs),
}

/// A registration.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// Name of the environment, by which jobs refer to it.
    pub name: String,
    /// Address of the server as the service sees it: `http://host:port`.
    pub url: String,
    /// Maximum number of episodes at a time: at most the sessions that the server has. OpenEnv's own default is 1.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(i32).range(1..=4_096))]
    pub sessions: i32,
    /// Seconds after which a step without an answer has failed.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(i32).range(1..=3_600))]
    pub step_seconds: i32,
    /// The same task, seed and actions give the same episode. Algorithms that go back to earlier states need it.
    #[arg(long)]
    pub replayable: bool,
    /// The environment variable of the service that holds the server's API key. Its name begins with `NLAC_PEER_KEY_`.
    #[arg(long, value_name = "VAR")]
    pub api_key_env: Option<String>,
}

/// What is played.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Name of a registered environment.
    pub name: String,
    /// Number of episodes.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub episodes: u32,
    /// A file with an action on each line, from which actions are drawn. An action is what a model would reply: a text, a
    /// JSON object, or a tool call as `{"name": …, "arguments": {…}}`. Without it, actions are drawn from those that the
    /// environment admits, or made up.
    #[arg(long, value_name = "FILE")]
    pub actions: Option<PathBuf>,
    /// Number of steps after which an episode is too long.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: u32,
    /// Seed of tasks and actions.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,
    /// The split to train on: `environment.train` of a job. By default the listed split of that name, or the first one.
    #[arg(long, value_name = "SPLIT")]
    pub train: Option<String>,
    /// The split to evaluate on: `environment.held_out` of a job. By default the listed split of that name, `test`,
    /// `validation`, or another one.
    #[arg(long, value_name = "SPLIT")]
    pub held_out: Option<String>,
    /// The environment's own settings, sent with every reset: `environment.reset` of a job, as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    pub reset: serde_json::Map<String, serde_json::Value>,
}

fn object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    serde_json::from_str(text).map_err(|e| format!("it is no JSON object: {e}"))
}
