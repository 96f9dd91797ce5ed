//! `nlac episodes …`.

use std::process::ExitCode;

use console::style;
use serde_json::{Value, json};

use super::{
    Failure,
    client::Api,
    experience_args::{EpisodesArgs, EpisodesCommand},
    listing::{self, cell, minute, text},
    report,
};

/// Runs one of the commands.
pub async fn run(args: EpisodesArgs) -> Result<ExitCode, Failure> {
    let api = Api::of(&args.service)?;
    let (episode, whole) = match args.command {
        EpisodesCommand::Show { id } => (api.get(&format!("/v1/episodes/{id}")).await?, true),
        EpisodesCommand::Reward { id, reward, step, success } => {
            let body = json!({ "reward": reward, "step": step, "success": success });
            (api.post(&format!("/v1/episodes/{id}/reward"), &body).await?, false)
        }
    };
    if args.output.json {
        report::json(&episode)?;
    } else {
        facts(&episode);
        if whole {
            conversations(&episode);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(episode: &Value) {
    let known = |value: &Value| text(value).filter(|text| !text.is_empty());
    let end = match text(&episode["truncated_by"]) {
        Some(by) => Some(format!("{} by {by}", cell(&episode["end_reason"]))),
        None => text(&episode["end_reason"]),
    };
    listing::facts(&[
        ("id", text(&episode["id"])),
        ("source", text(&episode["source"])),
        ("dataset", text(&episode["dataset"])),
        ("job", text(&episode["job_id"])),
        ("iteration", text(&episode["iteration"])),
        ("purpose", text(&episode["purpose"])),
        ("environment", text(&episode["environment"])),
        ("task", known(&episode["task"])),
        ("checkpoint", text(&episode["checkpoint_id"])),
        ("model", text(&episode["model"])),
        ("state", text(&episode["state"])),
        ("steps", text(&episode["turns"])),
        ("unreadable", text(&episode["unreadable"])),
        ("end", end),
        ("reward", text(&episode["reward_status"])),
        ("return", text(&episode["return"])),
        ("success", text(&episode["success"])),
        ("error", text(&episode["error"])),
        ("stored", Some(format!("{} UTC", minute(&episode["created_at"])))),
    ]);
}

/// The conversations of an episode. A context that extends an earlier one shows only its new messages.
fn conversations(episode: &Value) {
    let contexts = episode["contexts"].as_array().map_or(&[][..], Vec::as_slice);
    for (number, context) in contexts.iter().enumerate() {
        report::line("");
        if contexts.len() > 1 {
            report::line(&style(format!("context {number}")).bold().to_string());
        }
        let shared = context["shared"].as_u64().unwrap_or(0) as usize;
        if let Some(earlier) = context["grown_from"].as_u64() {
            report::line(&format!("  (the first {shared} messages of context {earlier})"));
        }
        for message in context["messages"].as_array().into_iter().flatten().skip(shared) {
            listing::message(message);
        }
    }
}
