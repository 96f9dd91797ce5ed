//! `nlac experiment run`: algorithms × seeds under one protocol. Where an experiment asks for it, each arm first chooses
//! its setting on training tasks; then the chosen settings run on held-out tasks. Every run is an ordinary job under an
//! idempotency key, so a second start goes on where the first was stopped, and tries again what failed.

mod budgets;
mod choice;
mod curves;
mod outcome;
mod plan;
mod remaining;
mod resampling;
mod runs;
mod table;
mod worlds;

use std::{path::Path, process::ExitCode};

use serde::de::DeserializeOwned;

use self::{choice::Choice, outcome::Run, plan::Experiment, runs::Progress, worlds::World};
use super::{
    Failure,
    args::{ExperimentArgs, ExperimentCommand, ExperimentRun},
    client::Api,
    report,
    serve::until_told,
};
use crate::{
    app::{App, ServiceSettings},
    domain::job::JobStatus,
    telemetry,
};

/// Runs the command.
pub async fn run(args: ExperimentArgs) -> Result<ExitCode, Failure> {
    let ExperimentCommand::Run(args) = args.command;
    let traces = telemetry::init("warn");
    let worlds = worlds::load(&args.file, &args.out, args.world.as_deref())?;
    let Some(server) = &args.server else {
        let app = App::start(&ServiceSettings::from(args.serve.clone())).await?;
        let url = format!("http://{}", app.address);
        report::line(&format!("nlac serves {url}: open it in a browser to watch"));
        let api = Api::new(&url, app.own_key.as_ref())?;
        let outcome = tokio::select! {
            outcome = conduct(&args, &worlds, &api) => outcome,
            told = until_told() => {
                told.and(Err("interrupted; the same command goes on where it was".into()))
            }
        };
        app.stop().await;
        traces.flush().await;
        return outcome;
    };
    conduct(&args, &worlds, &Api::new(server, args.api_key.as_ref())?).await
}

async fn conduct(args: &ExperimentRun, worlds: &[World], api: &Api) -> Result<ExitCode, Failure> {
    let mut ahead = Vec::new();
    for World { experiment, .. } in worlds {
        ahead.extend(experiment.development()?);
        ahead.extend(experiment.measurement(|_| 0)?);
    }
    let mut progress = Progress::new(ahead.len(), args.parallel.max(1));
    report::line(&progress.announcement(api, &ahead).await?);
    if args.estimate {
        return Ok(ExitCode::SUCCESS);
    }
    let mut all_succeeded = true;
    for World { experiment, out } in worlds {
        report::line(&format!("\n{}", experiment.name));
        let tried = runs::all(api, experiment.development()?, &mut progress, |_| Ok(())).await?;
        let choice = Choice::of(experiment, &tried);
        let tries = choice.table(&tried);
        let measured = experiment.measurement(|arm| choice.of_arm(&arm.name))?;
        let keep = |runs: &[Run]| write(out, experiment, &tried, &tries, runs);
        let runs = runs::all(api, measured, &mut progress, keep).await?;
        report::raw(&table::markdown(experiment, &runs));
        report::line(&format!("\nwritten to {}", out.display()));
        all_succeeded &= runs.iter().chain(&tried).all(|run| run.status == JobStatus::Succeeded);
    }
    Ok(if all_succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes what is known so far.
fn write(
    out: &Path,
    experiment: &Experiment,
    tried: &[Run],
    tries: &str,
    runs: &[Run],
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", out.display());
    std::fs::create_dir_all(out).map_err(failed)?;
    let mut sorted = runs.to_vec();
    let place = |run: &Run| experiment.arms.iter().position(|arm| arm.name == run.arm);
    sorted.sort_by_key(|run| (place(run), run.seed));
    let json = |runs: &[Run]| serde_json::to_string_pretty(runs).map(|text| text + "\n");
    let mut files = vec![
        ("runs.json", json(&sorted)?),
        ("table.md", table::markdown(experiment, &sorted)),
        ("equal-budgets.md", budgets::markdown(experiment, &sorted)),
    ];
    if !tried.is_empty() {
        files.extend([("development.json", json(tried)?), ("development.md", tries.to_owned())]);
    }
    for (name, text) in files {
        std::fs::write(out.join(name), text).map_err(failed)?;
    }
    for axis in outcome::Axis::ALL {
        let file = out.join(format!("curve-{}.svg", axis.slug()));
        curves::draw(&file, experiment, &sorted, *axis)?;
    }
    Ok(())
}

/// Reads a YAML file; errors name it.
fn read_yaml<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {shown}: {e}"))?;
    Ok(serde_yaml_ng::from_str(&text).map_err(|e| format!("{shown}: {e}"))?)
}
