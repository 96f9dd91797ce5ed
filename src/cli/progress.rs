//! Progress of a job: one line per iteration and, on a terminal, a bar for the current phase.

use std::{process::ExitCode, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::{
    Failure,
    client::Api,
    listing::{self, percent},
    report,
};
use crate::domain::{ids::JobId, job::JobStatus, metric::names};

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(250);

/// Follows a job until it ends. With JSON, prints one event per line. Fails if the job fails or is cancelled.
pub async fn follow(api: &Api, job: JobId, json: bool) -> Result<ExitCode, Failure> {
    let style = ProgressStyle::with_template("  {msg} {bar:24.cyan} {pos}/{len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    // Without a terminal, or with JSON, there is no bar. Lines are printed all the same.
    let target =
        if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stdout_with_hz(8) };
    let bar = ProgressBar::with_draw_target(Some(1), target).with_style(style);
    let say = |text: String| bar.suspend(|| report::line(&text));
    if !json {
        say(header());
    }
    let mut after = 0;
    loop {
        let view = api.get(&format!("/v1/jobs/{job}")).await?;
        let events = api.events(job, after).await?;
        for event in &events {
            after = event["id"].as_i64().unwrap_or(after);
            if json {
                say(event.to_string());
                continue;
            }
            match event["kind"].as_str().unwrap_or_default() {
                "iteration_finished" => say(iteration_line(&view, &event["data"], api, job).await?),
                "phase_started" | "published" | "evaluated" | "submitted" | "started" => {}
                _ => say(format!("  {}", event["message"].as_str().unwrap_or_default())),
            }
        }
        let status: JobStatus = serde_json::from_value(view["status"].clone())?;
        if status.is_final() && events.is_empty() {
            bar.finish_and_clear();
            if status == JobStatus::Succeeded {
                return Ok(ExitCode::SUCCESS);
            }
            let error = view["error"].as_str().map(|error| format!(": {error}"));
            return Err(format!("the job is {status}{}", error.unwrap_or_default()).into());
        }
        bar.set_length(view["units"].as_u64().unwrap_or(1).max(1));
        bar.set_position(view["units_done"].as_u64().unwrap_or(0));
        bar.set_message(standing(&view, status));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Status of a job in one line.
fn standing(view: &Value, status: JobStatus) -> String {
    let iterations = &view["spec"]["budget"]["iterations"];
    let iteration = view["iteration"].as_i64().unwrap_or(0);
    let left = listing::left(view).map(|left| format!(", {left} left")).unwrap_or_default();
    let phase = view["phase"].as_str().unwrap_or("waiting");
    let success = percent(&view["success"]);
    format!("{status} {iteration}/{iterations}, {success}{left}  {phase:8}")
}

fn header() -> String {
    format!(
        "{:>9}  {:>7}  {:>11}  {:>12}  {:>7}  {:>15}  {:>13}  left",
        "iteration",
        "success",
        "critic loss",
        "share of Yes",
        "changed",
        "generated tok/s",
        "trained tok/s",
    )
}

/// Success, critic loss, share of Yes, changed refinements, tokens per second, remaining time.
async fn iteration_line(
    view: &Value,
    data: &Value,
    api: &Api,
    job: JobId,
) -> Result<String, Failure> {
    let number = |name: &str| data[name].as_f64();
    let show = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
    };
    let percent = |value: Option<f64>| {
        value.map_or_else(|| "–".to_owned(), |v| format!("{:.0} %", 100.0 * v))
    };
    let iteration = data["iteration"].as_i64().unwrap_or(0);
    let shown = [names::EVAL_SUCCESS, "time.collect", "time.annotate", "time.learn"];
    let series = api.metrics(&job.to_string(), &shown, iteration).await?;
    let find = |name: &str, temperature: Option<f64>| {
        series
            .iter()
            .find(|m| {
                m["name"] == name
                    && m["iteration"].as_i64() == Some(iteration)
                    && (temperature.is_none() || m["temperature"].as_f64() == temperature)
            })
            .and_then(|m| m["value"].as_f64())
    };
    let quoted = view["spec"]["evaluation"]["temperature"].as_f64();
    let success = find(names::EVAL_SUCCESS, quoted);
    let per_second = |tokens: Option<f64>, phases: &[&str]| {
        let seconds: f64 =
            phases.iter().filter_map(|phase| find(&format!("time.{phase}"), None)).sum();
        tokens.filter(|_| seconds > 0.0).map(|tokens| tokens / seconds)
    };
    // Remaining time is known for now only, so only the newest iteration's line shows it.
    let newest = view["iteration"].as_i64().is_some_and(|newest| newest <= iteration + 1);
    let left =
        if newest { listing::left(view).unwrap_or_else(|| "–".into()) } else { String::new() };
    Ok(format!(
        "{iteration:>9}  {:>7}  {:>11}  {:>12}  {:>7}  {:>15}  {:>13}  {left}",
        percent(success),
        show(number(names::CRITIC_LOSS), 3),
        percent(number(names::VERDICT_YES)),
        percent(number(names::REFINEMENT_CHANGED)),
        show(per_second(number(names::GENERATED_TOKENS), &["collect", "annotate"]), 0),
        show(per_second(number(names::TRAINED_TOKENS), &["learn"]), 0),
    ))
}
