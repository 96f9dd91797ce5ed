//! `nlac experiment run`: what a second start does with what is there.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Place, Service, small_job};

fn start(service: &Service, place: &Path) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_nlac"))
        .args(["experiment", "run"])
        .arg(place.join("experiment.yaml"))
        .arg("--out")
        .arg(place.join("out"))
        .args(["--server", &service.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn ended(child: std::process::Child) -> Output {
    tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap()
}

async fn jobs(service: &Service) -> Vec<Value> {
    service.get("/v1/jobs").await.1["data"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_keeps_what_succeeded_and_tries_again_what_did_not() {
    let service = Service::start().await;
    let place = Place::new();
    let experiment = json!({
        "name": "pair", "base": "job.yaml", "seeds": [0],
        "arms": [
            { "name": "nlac", "title": "the method" },
            { "name": "react", "title": "no training", "set": { "algorithm": { "kind": "evaluation" } } },
        ],
    });
    std::fs::write(place.path().join("job.yaml"), small_job().to_string()).unwrap();
    std::fs::write(place.path().join("experiment.yaml"), experiment.to_string()).unwrap();

    let first = start(&service, place.path());
    let cancelled = loop {
        let of_nlac = |job: &&Value| job["spec"]["name"] == "pair-nlac";
        if let Some(job) = jobs(&service).await.iter().find(of_nlac) {
            break job["id"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let path = format!("/v1/jobs/{}/cancel", cancelled.as_str().unwrap());
    assert_eq!(service.post(&path, &json!({})).await.0, 200);
    let output = ended(first).await;
    assert!(!output.status.success(), "a run without an outcome is a failure");
    let read = |name: &str| std::fs::read_to_string(place.path().join("out").join(name)).unwrap();
    assert!(read("table.md").contains("| the method | 0 |"), "{}", read("table.md"));

    let output = ended(start(&service, place.path())).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(jobs(&service).await.len(), 3, "one of the two was tried again");
    assert!(read("table.md").contains("| the method | 1 |"));
    assert!(read("table.md").contains("| no training | 1 |"));
    let runs: Value = serde_json::from_str(&read("runs.json")).unwrap();
    assert!(runs.as_array().unwrap().iter().all(|run| run["status"] == "succeeded"), "{runs}");
    assert_ne!(runs[0]["job"], cancelled);
    for axis in ["env-steps", "optimizer-steps", "generated-tokens", "seconds"] {
        assert!(read(&format!("curve-{axis}.svg")).contains("the method"));
    }

    let equal = read("equal-budgets.md");
    assert!(equal.contains("| no training (1 ended before) |"), "{equal}");
    assert_eq!(runs[0]["spec"]["name"], "pair-nlac");

    let output = ended(start(&service, place.path())).await;
    assert!(output.status.success());
    assert_eq!(jobs(&service).await.len(), 3, "nothing is left to do");
    service.stop().await;

    let another = Service::start().await;
    let output = ended(start(&another, place.path())).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(jobs(&another).await.len(), 0, "the folder of results has all runs");
    another.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_arm_chooses_among_as_many_settings_on_training_tasks() {
    let service = Service::start().await;
    let place = Place::new();
    let mut job = small_job();
    job["budget"] = json!({ "iterations": 1 });
    let tries = json!([{}, { "optimizer.epochs": 2 }]);
    let experiment = json!({
        "name": "tuned", "base": "job.yaml", "seeds": [0], "development": { "seeds": [7] },
        "arms": [
            { "name": "nlac", "title": "NLAC", "tries": tries },
            { "name": "rft", "title": "RFT", "tries": tries,
                "set": { "algorithm": { "kind": "rejection_fine_tuning" } } },
            { "name": "react", "title": "no training", "set": { "algorithm": { "kind": "evaluation" } } },
        ],
    });
    std::fs::write(place.path().join("job.yaml"), job.to_string()).unwrap();
    std::fs::write(place.path().join("tuned.yaml"), experiment.to_string()).unwrap();
    std::fs::write(place.path().join("experiment.yaml"), r#"{ "worlds": ["tuned.yaml"] }"#)
        .unwrap();
    let output = ended(start(&service, place.path())).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("7 runs, 2 at a time"), "{said}");
    let out = place.path().join("out").join("tuned");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let development = read("development.md");
    assert_eq!(development.matches("| yes |").count(), 2, "{development}");
    let tried: Value = serde_json::from_str(&read("development.json")).unwrap();
    let tried = tried.as_array().unwrap();
    assert_eq!(tried.len(), 4);
    assert!(tried.iter().all(|run| run["spec"]["evaluation"]["tasks"] == "train"), "{tried:?}");
    let runs: Value = serde_json::from_str(&read("runs.json")).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 3);
    assert!(
        runs.as_array().unwrap().iter().all(|run| run["spec"]["evaluation"]["tasks"] == "held_out")
    );
    service.stop().await;
}
