//! `nlac local …`: the small engine and trainer by themselves.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use indicatif::{ProgressBar, ProgressStyle};
use nlac_local::{
    ServeError,
    engine::{self, EngineOptions},
    trainer::{self, TrainerOptions},
};
use tokio::net::TcpListener;

use super::{
    Failure,
    args::{LocalArgs, LocalCommand, PretrainTask},
    report,
    serve::until_told,
};
use crate::{
    app::default_data_dir,
    dev::{base_model, pretrain},
    telemetry,
};

/// Runs one of them.
pub async fn run(command: LocalCommand) -> Result<ExitCode, Failure> {
    telemetry::init_logs("warn");
    match command {
        LocalCommand::Engine(args) => {
            let mut options = EngineOptions::new(model_dir(&args)?, args.name.clone());
            options.threads = args.threads;
            let listener = listen(args.listen).await?;
            report::line(&format!("engine of {} at http://{}", args.name, listener.local_addr()?));
            engine::serve(listener, options, told()).await?;
        }
        LocalCommand::Trainer { local, checkpoints } => {
            let checkpoints = std::path::absolute(checkpoints)?;
            let mut options =
                TrainerOptions::new(model_dir(&local)?, local.name.clone(), checkpoints);
            options.threads = local.threads;
            let listener = listen(local.listen).await?;
            report::line(&format!(
                "trainer of {} at http://{}",
                local.name,
                listener.local_addr()?
            ));
            trainer::serve(listener, options, told()).await?;
        }
        LocalCommand::Pretrain { task, out, seed, layers, steps, batch, threads } => {
            let task = match task {
                PretrainTask::HelpDesk => pretrain::Task::HelpDesk,
                PretrainTask::TwentyQuestions => pretrain::Task::TwentyQuestions,
            };
            let options =
                pretrain::Options { task, seed, layers: layers.into(), steps, batch, threads };
            let loss = tokio::task::spawn_blocking(move || train(&out, options)).await??;
            report::line(&format!("final loss {loss:.3} nats per token"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn train(
    out: &std::path::Path,
    options: pretrain::Options,
) -> Result<f32, pretrain::PretrainError> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} steps, loss {msg}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(options.steps as u64).with_style(style);
    pretrain::pretrain(out, options, |_, loss| {
        bar.set_message(format!("{loss:.3}"));
        bar.inc(1);
    })
}

fn model_dir(args: &LocalArgs) -> Result<PathBuf, Failure> {
    match &args.model {
        Some(directory) => Ok(std::path::absolute(directory)?),
        None => Ok(base_model::install(&default_data_dir())?),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

async fn told() {
    if let Err(error) = until_told().await {
        tracing::warn!(%error, "signals cannot be heard");
    }
}
