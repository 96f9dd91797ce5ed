//! A job alone and with somebody who watches it, turn by turn.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;

/// Runs a job to its end: its id and how long it took.
pub async fn run(url: &str, spec: &Value) -> (String, Duration) {
    let http = super::client();
    let begun = Instant::now();
    let job = submit(&http, url, spec).await;
    (finish(&http, url, &job).await, begun.elapsed())
}

async fn submit(http: &reqwest::Client, url: &str, spec: &Value) -> String {
    let answer = http.post(format!("{url}/v1/jobs")).json(spec).send().await.unwrap();
    let job: Value = answer.json().await.unwrap();
    job["id"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned()
}

async fn finish(http: &reqwest::Client, url: &str, id: &str) -> String {
    loop {
        let answer = http.get(format!("{url}/v1/jobs/{id}")).send().await.unwrap();
        let job: Value = answer.json().await.unwrap();
        match job["status"].as_str().unwrap() {
            "succeeded" => return id.to_owned(),
            "failed" | "cancelled" => panic!("{job}"),
            _ => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

/// What a browser with a job's page open asks for: the page, its fragment every ten seconds and after each
/// event, and the stream of events.
fn watch(url: String, id: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        let http = super::client();
        let get = |path: String| http.get(format!("{url}{path}")).send();
        get(format!("/jobs/{id}")).await.unwrap().bytes().await.unwrap();
        let events = http.get(format!("{url}/v1/jobs/{id}/events"));
        let mut stream = events.header("accept", "text/event-stream").send().await.unwrap();
        loop {
            match tokio::time::timeout(Duration::from_secs(10), stream.chunk()).await {
                Ok(Ok(Some(_))) | Err(_) => {}
                Ok(_) => return,
            }
            get(format!("/jobs/{id}/live")).await.unwrap().bytes().await.unwrap();
        }
    })
}

/// Seconds of processor time of this process so far.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// The same job by turns alone and watched, and how much slower it is watched.
pub async fn cost_of_a_viewer(url: &str, repeats: usize) {
    let http = super::client();
    let spec = super::fill::spec("timed", 4);
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for turn in 0..2 * repeats {
        let (begun, before) = (Instant::now(), cpu());
        let id = submit(&http, url, &spec).await;
        let viewer = (turn % 2 == 1).then(|| watch(url.to_owned(), id.clone()));
        finish(&http, url, &id).await;
        let taken = (begun.elapsed().as_secs_f64(), cpu() - before);
        println!(
            "{}: {:.2} s, {:.2} s of CPU",
            if viewer.is_some() { "watched" } else { "alone" },
            taken.0,
            taken.1
        );
        if let Some(viewer) = viewer {
            viewer.abort();
            watched.push(taken);
        } else {
            alone.push(taken);
        }
    }
    let median = |all: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = all.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0
    };
    let more = |of| (median(&watched, of) / median(&alone, of) - 1.0) * 100.0;
    println!(
        "a viewer costs {:+.1} % of the job's time, {:+.1} % of its CPU (medians of {repeats})",
        more(|taken| taken.0),
        more(|taken| taken.1)
    );
}
