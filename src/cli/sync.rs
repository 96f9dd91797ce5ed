//! `nlac sync`: the adapters of jobs under way, in a directory beside an engine.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Failure, args::SyncArgs, client::Api, report, serve::until_told};
use crate::{telemetry, trainer::adapter};

/// Says that a directory is ours to remove from.
const MARK: &str = ".nlac-sync";
/// How long an adapter stays after nobody wants it any more: what it was writing may go on.
const GRACE: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
struct Wanted {
    checkpoint_id: String,
    name: String,
    sha256: String,
}

/// Runs until it is told to stop.
pub async fn run(args: SyncArgs) -> Result<ExitCode, Failure> {
    telemetry::init_logs("warn");
    let api = Api::of(&args.service)?;
    take(&args.dir)?;
    let mut directory = Directory { path: args.dir, unwanted: HashMap::new() };
    let told = CancellationToken::new();
    let telling = told.clone();
    tokio::spawn(async move {
        if let Err(error) = until_told().await {
            tracing::warn!(%error, "signals cannot be heard");
        }
        telling.cancel();
    });
    let every = Duration::try_from_secs_f64(args.every)
        .map_err(|_| format!("--every {} is no number of seconds", args.every))?;
    report::line(&format!("adapters of {} in {}", args.engine, directory.path.display()));
    // The engine's name is wrong, or the service is not there: better known at once.
    directory.follow(&api, &args.engine).await?;
    while told.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
        match told.run_until_cancelled(directory.follow(&api, &args.engine)).await {
            Some(Err(error)) => report::error(&format!("{error}; it tries again")),
            Some(Ok(())) => {}
            None => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a directory ours; one that holds anything else stays as it is.
fn take(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let mark = directory.join(MARK);
    if !mark.exists() {
        if std::fs::read_dir(directory)?.next().is_some() {
            let place = directory.display();
            return Err(format!("{place} holds other files; name an empty directory").into());
        }
        std::fs::write(mark, "kept by nlac sync\n")?;
    }
    Ok(())
}

struct Directory {
    path: PathBuf,
    /// Since when nobody wants an adapter that lies here.
    unwanted: HashMap<String, Instant>,
}

impl Directory {
    /// Fetches what is wanted and not here, removes what was not wanted for a while.
    async fn follow(&mut self, api: &Api, engine: &str) -> Result<(), Failure> {
        let mut page = api.get(&format!("/v1/engines/{engine}/adapters")).await?;
        let wanted: Vec<Wanted> = serde_json::from_value(page["data"].take())?;
        for adapter in &wanted {
            if !self.path.join(&adapter.name).exists() {
                self.fetch(api, adapter).await?;
            }
        }
        let now = Instant::now();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name == MARK || wanted.iter().any(|adapter| adapter.name == name) {
                self.unwanted.remove(&name);
                continue;
            }
            let since = *self.unwanted.entry(name.clone()).or_insert(now);
            if now.duration_since(since) >= GRACE {
                std::fs::remove_dir_all(self.path.join(&name))?;
                self.unwanted.remove(&name);
                report::line(&format!("removed {name}"));
            }
        }
        Ok(())
    }

    /// Under its name only when it is whole and what it should be.
    async fn fetch(&self, api: &Api, wanted: &Wanted) -> Result<(), Failure> {
        let Wanted { checkpoint_id, name, sha256 } = wanted;
        if name.starts_with('.') || name.contains(['/', '\\']) {
            return Err(format!("{name:?} is no name of an adapter").into());
        }
        let archive = api.get_archive(&format!("/v1/checkpoints/{checkpoint_id}/files")).await?;
        let incoming = self.path.join(format!(".incoming-{name}"));
        if incoming.exists() {
            std::fs::remove_dir_all(&incoming)?;
        }
        adapter::unpack(&archive, &incoming)?;
        let found = adapter::sha256(&incoming)?;
        if found != *sha256 {
            std::fs::remove_dir_all(&incoming)?;
            return Err(format!("{name} came with hash {found}, not {sha256}").into());
        }
        std::fs::rename(&incoming, self.path.join(name))?;
        report::line(&format!("fetched {name}"));
        Ok(())
    }
}
