//! `nlac checkpoints …`.

use std::process::ExitCode;

use serde_json::Value;

use super::{
    Failure,
    client::Api,
    listing::{self, cell, minute, percent, text},
    report,
    service_args::{CheckpointsArgs, CheckpointsCommand},
};

/// Runs one of the commands.
pub async fn run(args: CheckpointsArgs) -> Result<ExitCode, Failure> {
    let api = Api::of(&args.service)?;
    match args.command {
        CheckpointsCommand::List { job } => {
            let page = api.get(&format!("/v1/jobs/{job}/checkpoints?limit=200")).await?;
            if args.output.json {
                report::json(&page)?;
            } else {
                let rows = page["data"].as_array().map_or(&[][..], Vec::as_slice);
                let header = ["id", "version", "role", "success", "steps", "name", "published"];
                listing::print(&header, rows.iter().map(row).collect());
            }
        }
        CheckpointsCommand::Show { id } => {
            let checkpoint = api.get(&format!("/v1/checkpoints/{id}")).await?;
            if args.output.json {
                report::json(&checkpoint)?;
            } else {
                show(&checkpoint);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(checkpoint: &Value) -> Vec<String> {
    vec![
        cell(&checkpoint["id"]),
        cell(&checkpoint["version"]),
        cell(&checkpoint["role"]),
        percent(&checkpoint["success"]),
        cell(&checkpoint["optimizer_steps"]),
        cell(&checkpoint["name"]),
        minute(&checkpoint["published_at"]),
    ]
}

fn show(checkpoint: &Value) {
    let parents = checkpoint["parents"].as_array().filter(|parents| !parents.is_empty());
    let parents = parents.map(|all| all.iter().map(cell).collect::<Vec<_>>().join(", "));
    let success = &checkpoint["success"];
    listing::facts(&[
        ("id", text(&checkpoint["id"])),
        ("job", text(&checkpoint["job_id"])),
        ("name", text(&checkpoint["name"])),
        ("role", text(&checkpoint["role"])),
        ("version", text(&checkpoint["version"])),
        ("success", (!success.is_null()).then(|| percent(success))),
        ("steps", text(&checkpoint["optimizer_steps"])),
        ("made from", parents),
        ("files", text(&checkpoint["path"])),
        ("sha256", text(&checkpoint["sha256"])),
        ("recorded", Some(format!("{} UTC", minute(&checkpoint["created_at"])))),
        ("published", Some(minute(&checkpoint["published_at"]))),
    ]);
}
