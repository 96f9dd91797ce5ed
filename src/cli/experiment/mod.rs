//! `nlac experiment run`: algorithms × seeds under equal budgets, and what came of them as a table and
//! as curves. Every run is an ordinary job under an idempotency key, so a second start goes on where
//! the first was stopped, and tries again what failed.

mod curves;
mod outcome;
mod plan;
mod table;

use std::{path::Path, process::ExitCode, time::Duration};

use serde_json::Value;

use self::{
    outcome::Run,
    plan::{Experiment, Planned},
};
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

/// Pause between two looks at the jobs under way.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs the command.
pub async fn run(args: ExperimentArgs) -> Result<ExitCode, Failure> {
    let ExperimentCommand::Run(args) = args.command;
    let traces = telemetry::init("warn");
    let experiment = Experiment::load(&args.file)?;
    let Some(server) = &args.server else {
        let app = App::start(&ServiceSettings::from(args.serve.clone())).await?;
        let url = format!("http://{}", app.address);
        report::line(&format!("nlac serves {url}: open it in a browser to watch"));
        let api = Api::new(&url, app.own_key.as_ref())?;
        let outcome = tokio::select! {
            outcome = conduct(&args, &experiment, &api) => outcome,
            told = until_told() => {
                told.and(Err("interrupted; the same command goes on where it was".into()))
            }
        };
        app.stop().await;
        traces.flush().await;
        return outcome;
    };
    conduct(&args, &experiment, &Api::new(server, args.api_key.as_ref())?).await
}

async fn conduct(
    args: &ExperimentRun,
    experiment: &Experiment,
    api: &Api,
) -> Result<ExitCode, Failure> {
    let mut waiting = experiment.plan()?;
    let total = waiting.len();
    waiting.reverse();
    let (mut open, mut runs): (Vec<(Planned, String)>, Vec<Run>) = Default::default();
    report::line(&format!("{total} runs, {} at a time", args.parallel));
    while !(waiting.is_empty() && open.is_empty()) {
        while open.len() < args.parallel.max(1) {
            let Some(planned) = waiting.pop() else { break };
            let id = submit(api, &planned).await?;
            open.push((planned, id));
        }
        let mut still = Vec::new();
        for (planned, id) in open {
            let view = api.get(&format!("/v1/jobs/{id}")).await?;
            let status: JobStatus = serde_json::from_value(view["status"].clone())?;
            if !status.is_final() {
                still.push((planned, id));
                continue;
            }
            let run = Run::read(api, &planned, &view).await?;
            report::line(&format!("{:>4} of {total}  {}", runs.len() + 1, run.line()));
            runs.push(run);
            write(&args.out, experiment, &runs)?;
        }
        open = still;
        if !open.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    report::raw(&table::markdown(experiment, &runs));
    report::line(&format!("\nwritten to {}", args.out.display()));
    let failed = runs.iter().any(|run| run.status != JobStatus::Succeeded);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The job of a run: that of an earlier start, unless it failed or was cancelled, or a new one.
async fn submit(api: &Api, planned: &Planned) -> Result<String, Failure> {
    let mut key = planned.key.clone();
    loop {
        let job = api.submit(&planned.spec, &key).await?;
        let status: JobStatus = serde_json::from_value(job["status"].clone())?;
        if !status.is_final() || status == JobStatus::Succeeded {
            return Ok(job["id"].as_str().unwrap_or_default().to_owned());
        }
        key.push_str("-again");
    }
}

/// Writes what is known so far.
fn write(out: &Path, experiment: &Experiment, runs: &[Run]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", out.display());
    std::fs::create_dir_all(out).map_err(failed)?;
    let mut runs: Vec<&Run> = runs.iter().collect();
    let place = |run: &&Run| experiment.arms.iter().position(|arm| arm.name == run.arm);
    runs.sort_by_key(|run| (place(run), run.seed));
    let owned: Vec<Run> = runs.into_iter().cloned().collect();
    let json: Value = serde_json::to_value(&owned)?;
    let text = serde_json::to_string_pretty(&json)? + "\n";
    std::fs::write(out.join("runs.json"), text).map_err(failed)?;
    std::fs::write(out.join("table.md"), table::markdown(experiment, &owned)).map_err(failed)?;
    for axis in outcome::Axis::ALL {
        let file = out.join(format!("curve-{}.svg", axis.slug()));
        curves::draw(&file, experiment, &owned, *axis)?;
    }
    Ok(())
}
