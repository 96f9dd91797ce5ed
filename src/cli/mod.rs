//! Arguments, subcommands, exit codes. An error is one sentence on standard error.

mod args;
mod checkpoints;
mod client;
mod datasets;
mod demo;
mod doctor;
mod environments;
mod environments_args;
mod episodes;
mod estimate;
mod evaluations;
mod evaluations_args;
mod experience_args;
mod experiment;
mod export;
mod import;
mod jobs;
mod keys;
mod listing;
mod local;
mod peers;
mod progress;
mod prompts;
mod prompts_args;
mod report;
mod serve;
mod service_args;
mod sync;
mod transitions;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

pub use args::Cli;
use args::Command;

/// Error of a command, printed as one sentence.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Parses the arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli.command));
            // A blocking library call must not delay the exit.
            runtime.shutdown_timeout(std::time::Duration::from_secs(2));
            outcome
        }
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Experiment(args) => experiment::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Import(args) => import::run(args).await,
        Command::Jobs(args) => jobs::run(args).await,
        Command::Datasets(args) => datasets::run(args).await,
        Command::Episodes(args) => episodes::run(args).await,
        Command::Transitions(args) => transitions::run(args).await,
        Command::Checkpoints(args) => checkpoints::run(args).await,
        Command::Evaluations(args) => evaluations::run(args).await,
        Command::Engines(args) => peers::engines(args).await,
        Command::Trainers(args) => peers::trainers(args).await,
        Command::Environments(args) => environments::run(args).await,
        Command::Prompts(args) => prompts::run(args).await,
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "nlac", &mut script);
            report::raw(&String::from_utf8_lossy(&script));
            Ok(ExitCode::SUCCESS)
        }
        Command::Keys(args) => keys::run(args).await,
        Command::Local(command) => local::run(command).await,
        Command::Sync(args) => sync::run(args).await,
        Command::Migrate(args) => serve::migrate(args).await,
        Command::Openapi => {
            report::raw(&crate::api::openapi_yaml()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
