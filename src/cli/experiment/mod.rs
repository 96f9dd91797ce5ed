//! `nlac experiment run`: algorithms × seeds under one protocol. If the experiment has a development part,
//! each arm first chooses its setting on training tasks. Then the chosen settings run on held-out tasks.
//! Every run is an ordinary job with an idempotency key, so a second start continues where the first one
//! stopped, and retries failed runs. Finished runs are kept in the results folder, so they count on another
//! machine as well.

mod budgets;
mod choice;
mod curves;
mod outcome;
mod plan;
mod remaining;
mod resampling;
mod results;
mod runs;
mod table;
mod worlds;

use std::{path::Path, process::ExitCode};

use serde::de::DeserializeOwned;

use self::{choice::Choice, outcome::Run, runs::Progress, worlds::World};
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
                told.and(Err("interrupted; run the same command again to continue".into()))
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
    for World { experiment, results } in worlds {
        let kept = results.kept()?;
        let development = experiment.development()?;
        let tried: Vec<Run> = development.iter().filter_map(|run| kept.get(run)).collect();
        let choice = Choice::of(experiment, &tried);
        ahead.extend(development.into_iter().filter(|run| kept.get(run).is_none()));
        let measurement = experiment.measurement(|arm| choice.of_arm(&arm.name))?;
        ahead.extend(measurement.into_iter().filter(|run| kept.get(run).is_none()));
    }
    let mut progress = Progress::new(ahead.len(), args.parallel.max(1));
    report::line(&progress.announcement(api, &ahead).await?);
    if args.estimate {
        return Ok(ExitCode::SUCCESS);
    }
    let mut all_succeeded = true;
    for World { experiment, results } in worlds {
        report::line(&format!("\n{}", experiment.name));
        let kept = results.kept()?;
        let keep =
            |tried: &[Run]| results.write_tries(tried, &Choice::of(experiment, tried).table(tried));
        let tried = runs::all(api, experiment.development()?, &kept, &mut progress, keep).await?;
        let choice = Choice::of(experiment, &tried);
        let measured = experiment.measurement(|arm| choice.of_arm(&arm.name))?;
        let keep = |runs: &[Run]| results.write(experiment, runs);
        let runs = runs::all(api, measured, &kept, &mut progress, keep).await?;
        report::raw(&table::markdown(experiment, &runs));
        report::line(&format!("\nwritten to {results}"));
        all_succeeded &= runs.iter().chain(&tried).all(|run| run.status == JobStatus::Succeeded);
    }
    Ok(if all_succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads a YAML file. Errors name the file.
fn read_yaml<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {shown}: {e}"))?;
    Ok(serde_yaml_ng::from_str(&text).map_err(|e| format!("{shown}: {e}"))?)
}
