//! Arguments of `nlac datasets` and `nlac episodes`.

use clap::{Args, Subcommand};

use super::service_args::{OutputArgs, ServiceArgs};
use crate::domain::ids::EpisodeId;

/// Datasets.
#[derive(Debug, Args)]
pub struct DatasetsArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: DatasetsCommand,
}

/// Commands of `nlac datasets`. `nlac import` creates datasets.
#[derive(Debug, Subcommand)]
pub enum DatasetsCommand {
    /// List all datasets with their size and success rate.
    List,
    /// Show a dataset and its newest episodes.
    Show {
        /// Name of the dataset.
        name: String,
        /// Maximum number of episodes.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// Delete a dataset.
    ///
    /// The service rejects this while an unfinished job uses the dataset. A job keeps the episodes that it
    /// learned from.
    Delete {
        /// Name of the dataset.
        name: String,
    },
}

/// Episodes.
#[derive(Debug, Args)]
pub struct EpisodesArgs {
    /// The service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: EpisodesCommand,
}

/// Commands of `nlac episodes`.
#[derive(Debug, Subcommand)]
pub enum EpisodesCommand {
    /// Show an episode: source, outcome and conversation.
    Show {
        /// Id of the episode.
        id: EpisodeId,
    },
    /// Report a reward that was unknown when the episode was stored.
    ///
    /// Jobs do not learn from a step whose reward is pending. After the report, jobs that learn from the
    /// episode can replay the step.
    Reward {
        /// Id of the episode.
        id: EpisodeId,
        /// Reward.
        #[arg(allow_negative_numbers = true)]
        reward: f64,
        /// Step that gets the reward, from 0. The default is the last step.
        #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
        step: Option<i32>,
        /// Whether the episode solved the task, if known.
        #[arg(long, value_name = "true|false")]
        success: Option<bool>,
    },
}
