//! `nlac jobs …`.

use std::{io::Read, path::Path, process::ExitCode};

use serde_json::Value;

use super::{
    Failure,
    args::{JobsArgs, JobsCommand},
    client::Api,
    progress, report,
};

/// Runs one of them.
pub async fn run(args: JobsArgs) -> Result<ExitCode, Failure> {
    let api = Api::new(&args.server)?;
    let nothing = Value::Null;
    let answer = match args.command {
        JobsCommand::Submit { file } => {
            let job = api.post("/v1/jobs", &read_spec(&file)?).await?;
            if !args.json {
                let id = job["id"].as_str().unwrap_or_default();
                report::line(&format!("submitted {id}; follow it with `nlac jobs watch {id}`"));
                return Ok(ExitCode::SUCCESS);
            }
            job
        }
        JobsCommand::List => {
            let page = api.get("/v1/jobs?limit=200").await?;
            if !args.json {
                table(page["data"].as_array().map_or(&[], Vec::as_slice));
                return Ok(ExitCode::SUCCESS);
            }
            page
        }
        JobsCommand::Show { id } => api.get(&format!("/v1/jobs/{id}")).await?,
        JobsCommand::Watch { id } => return progress::follow(&api, id).await,
        JobsCommand::Pause { id } => api.post(&format!("/v1/jobs/{id}/pause"), &nothing).await?,
        JobsCommand::Resume { id } => api.post(&format!("/v1/jobs/{id}/resume"), &nothing).await?,
        JobsCommand::Cancel { id } => api.post(&format!("/v1/jobs/{id}/cancel"), &nothing).await?,
    };
    if args.json {
        report::line(&serde_json::to_string_pretty(&answer)?);
    } else {
        show(&answer);
    }
    Ok(ExitCode::SUCCESS)
}

/// YAML holds JSON too.
fn read_spec(file: &Path) -> Result<Value, Failure> {
    let mut text = String::new();
    let named = file.display();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {named}: {e}"))?;
    }
    serde_yaml_ng::from_str(&text)
        .map_err(|e| format!("{named} is neither YAML nor JSON: {e}").into())
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".into(), |v| format!("{:.1} %", 100.0 * v))
}

fn table(jobs: &[Value]) {
    report::line(&format!(
        "{:36}  {:20}  {:10}  {:>9}  success",
        "id", "name", "status", "iteration"
    ));
    for job in jobs {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        report::line(&format!(
            "{:36}  {:20}  {:10}  {:>9}  {} → {}",
            text(&job["id"]),
            text(&job["spec"]["name"]),
            text(&job["status"]),
            job["iteration"].as_i64().map_or_else(|| "–".into(), |i| i.to_string()),
            percent(&job["success_before"]),
            percent(&job["success"]),
        ));
    }
}

fn show(job: &Value) {
    table(std::slice::from_ref(job));
    if let Some(error) = job["error"].as_str() {
        report::line(error);
    }
}
