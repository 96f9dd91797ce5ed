//! `nlac engines list` and `nlac trainers list`.

use std::process::ExitCode;

use serde_json::Value;

use super::{
    Failure,
    client::Api,
    listing::{self, cell, text},
    report,
    service_args::{PeersArgs, PeersCommand},
};

/// Lists engines.
pub async fn engines(args: PeersArgs) -> Result<ExitCode, Failure> {
    let header = ["name", "kind", "model", "state", "can", "addresses"];
    let row = |engine: &Value| {
        let found = &engine["capabilities"];
        let mut can = Vec::new();
        can.extend(text(&found["version"]).filter(|version| !version.is_empty()));
        can.extend(text(&found["max_model_len"]).map(|longest| format!("{longest} tokens")));
        can.extend(text(&found["max_rank"]).map(|rank| format!("rank {rank}")));
        can.extend((found["runtime_adapters"] == true).then(|| "adapters at run time".to_owned()));
        let urls = engine["urls"].as_array().into_iter().flatten().map(|url| {
            let draining = engine["draining"].as_array().is_some_and(|all| all.contains(url));
            if draining { format!("{} (draining)", cell(url)) } else { cell(url) }
        });
        let urls = urls.collect::<Vec<_>>().join(", ");
        let (name, kind, model) = (&engine["name"], &engine["kind"], &engine["model"]);
        vec![cell(name), cell(kind), cell(model), state(engine), can.join(", "), urls]
    };
    list(&args, "/v1/engines", &header, row).await
}

/// Lists trainers.
pub async fn trainers(args: PeersArgs) -> Result<ExitCode, Failure> {
    let header = ["name", "kind", "model", "state", "can", "address"];
    let row = |trainer: &Value| {
        let models = trainer["capabilities"]["models"].as_array().into_iter().flatten();
        let models = models.map(cell).collect::<Vec<_>>().join(", ");
        let can = if models.is_empty() { String::new() } else { format!("trains {models}") };
        let (name, kind, model) = (&trainer["name"], &trainer["kind"], &trainer["model"]);
        vec![cell(name), cell(kind), cell(model), state(trainer), can, cell(&trainer["url"])]
    };
    list(&args, "/v1/trainers", &header, row).await
}

async fn list(
    args: &PeersArgs,
    path: &str,
    header: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> Result<ExitCode, Failure> {
    let PeersCommand::List = args.command;
    let page = Api::of(&args.service)?.get(path).await?;
    if args.output.json {
        report::json(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = page["data"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        report::line(&format!("none registered; register one with PUT {path}/NAME"));
    } else {
        listing::print(header, rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether it answered the last check.
pub fn state(peer: &Value) -> String {
    match (&peer["trouble"], &peer["checked_at"]) {
        (Value::String(trouble), _) => format!("no answer: {trouble}"),
        (_, Value::Null) => "not checked yet".into(),
        _ => "answers".into(),
    }
}
