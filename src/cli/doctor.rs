//! `nlac doctor`: every registered engine and trainer, end to end.

use std::{
    path::Path,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Failure, args::DoctorArgs, client::Api, report};
use crate::{
    doctor::{Finding, Trouble, examine_engine, examine_trainer},
    domain::{
        peer::{EngineRecord, TrainerRecord},
        peer_key::PeerKeys,
    },
    engine::Adapter,
    telemetry,
};

/// Runs the command.
pub async fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    telemetry::init_logs("error");
    let api = Api::of(&args.service)?;
    let engines: Vec<EngineRecord> = listed(api.get("/v1/engines").await?)?;
    let trainers: Vec<TrainerRecord> = listed(api.get("/v1/trainers").await?)?;
    if engines.is_empty() || trainers.is_empty() {
        report::error(
            "a job needs an engine and a trainer: register them with PUT /v1/engines/NAME and PUT /v1/trainers/NAME",
        );
    }
    // A directory of its own: names of adapters are used once.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let place = std::path::absolute(&args.shared)?.join(format!("nlac-doctor-{now}"));
    std::fs::create_dir_all(&place)
        .map_err(|e| format!("cannot make {}: {e}; choose another --shared", place.display()))?;
    let json = args.output.json;
    let outcome = examine(engines, trainers, &place, now, json).await;
    std::fs::remove_dir_all(&place)?;
    let failed = outcome.iter().filter(|finding| finding.outcome.is_err()).count();
    if json {
        report::json(&outcome.iter().map(finding).collect())?;
    } else {
        report::line(&match failed {
            0 => "everything that was tried works".to_owned(),
            _ => format!("{failed} of {} failed", outcome.len()),
        });
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn examine(
    engines: Vec<EngineRecord>,
    trainers: Vec<TrainerRecord>,
    place: &Path,
    now: u128,
    json: bool,
) -> Vec<Finding> {
    let tell = |findings: Vec<Finding>, all: &mut Vec<Finding>| {
        for finding in findings.iter().filter(|_| !json) {
            report::line(&finding.to_string());
        }
        all.extend(findings);
    };
    let mut all = Vec::new();
    let mut adapters = Vec::new();
    for trainer in trainers {
        let export = place.join(&trainer.name);
        let key = api_key(trainer.api_key_env.as_deref(), std::slice::from_ref(&trainer.url));
        tell(examine_trainer(&trainer, key.as_deref(), &export).await, &mut all);
        if export.is_dir() {
            adapters.push(Adapter {
                name: format!("nlac-doctor-{}-{now}", trainer.name),
                path: export,
            });
        }
    }
    for engine in engines {
        let adapter = adapters.first();
        let key = api_key(engine.api_key_env.as_deref(), &engine.urls);
        if adapter.is_none() && engine.kind.serves_adapters() {
            report::error(&format!("{}: no trainer made an adapter to load", engine.name));
        }
        tell(examine_engine(&engine, key.as_deref(), adapter).await, &mut all);
    }
    all
}

fn finding(Finding { peer, tried, outcome, took }: &Finding) -> Value {
    let (detail, remedy) = match outcome {
        Ok(detail) => (detail, None),
        Err(Trouble { what, remedy }) => (what, Some(remedy)),
    };
    json!({
        "peer": peer, "tried": tried, "works": outcome.is_ok(), "detail": detail, "remedy": remedy,
        "milliseconds": took.as_millis() as u64,
    })
}

/// The key from this command's own environment. Without it the examination goes on, and the peer answers that it
/// wants one.
fn api_key(variable: Option<&str>, urls: &[String]) -> Option<String> {
    match PeerKeys::from_env().key(variable?, urls) {
        Ok(key) => Some(key.to_owned()),
        Err(error) => {
            report::error(&error.to_string());
            None
        }
    }
}

fn listed<T: DeserializeOwned>(mut page: Value) -> Result<Vec<T>, Failure> {
    Ok(serde_json::from_value(page["data"].take())?)
}
