//! Arguments of `nlac prompts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::service_args::{OutputArgs, ServiceArgs};
use crate::domain::ids::TransitionId;

/// Prompt sets.
#[derive(Debug, Args)]
pub struct PromptsArgs {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// How answers are printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: PromptsCommand,
}

/// What can be done with prompt sets.
#[derive(Debug, Subcommand)]
pub enum PromptsCommand {
    /// List all sets: those that ship, and your own.
    List,
    /// Show the files of a set.
    Show {
        /// Its name.
        name: String,
        /// Write the files into this directory instead, to make a set of your own from them.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Push a directory as a set, and print what changed by part.
    ///
    /// The directory holds a file for each part: policy.md, successor.md, bellman.md, bellman_terminal.md, evaluator.md
    /// and refiner.md, and optionally corrector.md, value.md, aggregator.md, chooser.md and general.yaml. Jobs under way
    /// keep the prompts that they were submitted with; a job that names the set from now on gets these.
    Push(PushArgs),
    /// Delete a set of yours.
    Delete {
        /// Its name.
        name: String,
    },
}

/// What is pushed.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// The directory.
    pub dir: PathBuf,
    /// The set's name; the directory's name unless given.
    #[arg(long)]
    pub name: Option<String>,
    /// Push nothing: render each part on this stored transition, and show what would be read in the newest stored
    /// replies.
    #[arg(long = "try", value_name = "TRANSITION")]
    pub transition: Option<TransitionId>,
}
