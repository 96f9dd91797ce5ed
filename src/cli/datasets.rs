//! `nlac datasets …`.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{
    Failure,
    client::{Api, named},
    experience_args::{DatasetsArgs, DatasetsCommand},
    listing::{self, cell, minute, percent, text},
    report,
};

/// Fields that the table of episodes shows. It leaves out contexts, which may be long.
const FIELDS: &str = "id,task,model,turns,state,return,success,created_at";

/// Runs one of the commands.
pub async fn run(args: DatasetsArgs) -> Result<ExitCode, Failure> {
    let (api, json) = (Api::of(&args.service)?, args.output.json);
    match args.command {
        DatasetsCommand::List => {
            let page = api.get("/v1/datasets").await?;
            if json {
                report::json(&page)?;
            } else {
                list(rows(&page));
            }
        }
        DatasetsCommand::Show { name, limit } => {
            let path = format!("{}/episodes?limit={limit}", path(&name)?);
            let path = if json { path } else { format!("{path}&fields={FIELDS}") };
            let mut page = api.get(&path).await?;
            let datasets = api.get("/v1/datasets").await?;
            let dataset = rows(&datasets).iter().find(|one| one["name"] == name.as_str());
            let dataset = dataset.ok_or_else(|| format!("dataset {name} no longer exists"))?;
            if json {
                page["dataset"] = dataset.clone();
                report::json(&page)?;
            } else {
                show(dataset, &page);
            }
        }
        DatasetsCommand::Delete { name } => {
            api.remove(&path(&name)?).await?;
            if json {
                report::json(&json!({ "deleted": name }))?;
            } else {
                report::line(&format!("deleted dataset {name}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn path(name: &str) -> Result<String, Failure> {
    named("/v1/datasets", name, "`nlac datasets list` shows the names")
}

fn rows(page: &Value) -> &[Value] {
    page["data"].as_array().map_or(&[], Vec::as_slice)
}

fn list(datasets: &[Value]) {
    if datasets.is_empty() {
        report::line("no datasets; create one with `nlac import PATH --dataset NAME`");
        return;
    }
    let row = |dataset: &Value| {
        vec![
            cell(&dataset["name"]),
            cell(&dataset["version"]),
            cell(&dataset["episodes"]),
            cell(&dataset["transitions"]),
            cell(&dataset["open"]),
            percent(&dataset["success"]),
            minute(&dataset["created_at"]),
        ]
    };
    let header = [
        "name",
        "version",
        "episodes",
        "transitions",
        "reward pending",
        "success",
        "created (UTC)",
    ];
    listing::print(&header, datasets.iter().map(row).collect());
}

fn show(dataset: &Value, page: &Value) {
    let success = &dataset["success"];
    listing::facts(&[
        ("name", text(&dataset["name"])),
        ("version", text(&dataset["version"])),
        ("episodes", text(&dataset["episodes"])),
        ("transitions", text(&dataset["transitions"])),
        ("reward pending", text(&dataset["open"])),
        ("success", (!success.is_null()).then(|| percent(success))),
        ("created", Some(format!("{} UTC", minute(&dataset["created_at"])))),
    ]);
    report::line("");
    let row = |episode: &Value| {
        vec![
            cell(&episode["id"]),
            text(&episode["task"]).filter(|task| !task.is_empty()).unwrap_or_else(|| "–".into()),
            cell(&episode["model"]),
            cell(&episode["turns"]),
            cell(&episode["state"]),
            cell(&episode["return"]),
            cell(&episode["success"]),
            minute(&episode["created_at"]),
        ]
    };
    let header =
        ["episode", "task", "model", "steps", "state", "return", "success", "stored (UTC)"];
    listing::print(&header, rows(page).iter().map(row).collect());
    if !page["next"].is_null() {
        report::line("older episodes are not shown; raise --limit to see more");
    }
}
