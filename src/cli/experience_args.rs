//! Arguments of `nlac datasets` and `nlac episodes`.

use clap::{Args, Subcommand};

use super::service_args::{OutputArgs, ServiceArgs};
use crate::domain::ids::EpisodeId;

/// Datasets.
#[derive(Debug, Args)]
pub struct DatasetsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: DatasetsCommand,
}

/// What can be done with datasets. `nlac import` makes them.
#[derive(Debug, Subcommand)]
pub enum DatasetsCommand {
    /// List all datasets with their size and success.
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
    /// The service rejects this while a job that is not over names the dataset. A job that has learnt from the dataset
    /// keeps the episodes that it learnt from.
    Delete {
        /// Name of the dataset.
        name: String,
    },
}

/// Episodes.
#[derive(Debug, Args)]
pub struct EpisodesArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: EpisodesCommand,
}

/// What can be done with episodes.
#[derive(Debug, Subcommand)]
pub enum EpisodesCommand {
    /// Show an episode: its source, its outcome, and what the agent saw and said.
    Show {
        /// Id of the episode.
        id: EpisodeId,
    },
    /// Give an episode a reward that it was imported without.
    ///
    /// A step whose reward is pending is not learnt from. Once it has its reward, the jobs that learn from the episode
    /// may draw it.
    Reward {
        /// Id of the episode.
        id: EpisodeId,
        /// The reward.
        #[arg(allow_negative_numbers = true)]
        reward: f64,
        /// The step that the reward is for, from 0; the last step unless given.
        #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
        step: Option<i32>,
        /// Whether the task was solved, if that is known.
        #[arg(long, value_name = "true|false")]
        success: Option<bool>,
    },
}
