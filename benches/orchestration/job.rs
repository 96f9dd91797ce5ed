//! The job that is measured, and the service that runs it.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    engine::MODEL,
    process::{Process, at, free_port, model_dir, place, until_ready},
    processor::Used,
};

/// A running service with its trainer.
pub struct Service {
    http: reqwest::Client,
    url: String,
    nlac: Process,
    _trainer: Process,
}

impl Service {
    /// Starts a service that knows the engine, and a trainer.
    pub async fn start(
        http: &reqwest::Client,
        engine: &str,
        program: Option<&Path>,
        in_flight: usize,
    ) -> Self {
        let program = super::process::nlac(program);
        let trainer = free_port();
        let (directory, mut command) = (place(), Command::new(&program));
        command.args(["local", "trainer", "--listen", &format!("127.0.0.1:{trainer}")]);
        command.arg("--model").arg(model_dir()).arg("--checkpoints").arg(directory.path());
        let running = Process::start(&mut command, directory);
        let port = free_port();
        let (directory, mut command) = (place(), Command::new(&program));
        command.args(["serve", "--no-local", "--listen", &format!("127.0.0.1:{port}")]);
        command.arg("--data-dir").arg(directory.path());
        command.env_remove("DATABASE_URL").env("NLAC_LOG", "error");
        let nlac = Process::start(&mut command, directory);
        let service = Self { http: http.clone(), url: at(port), nlac, _trainer: running };
        until_ready(http, &format!("{}/readyz", service.url)).await;
        until_ready(http, &format!("{}/api/v1/healthz", at(trainer))).await;
        let engine = json!({ "kind": "vllm", "urls": [engine], "base_model": MODEL,
            "model_dir": model_dir(), "limits": { "in_flight": in_flight } });
        service.put("/v1/engines/instant", &engine).await;
        let trainer = json!({ "kind": "tinker", "url": at(trainer), "base_model": MODEL });
        service.put("/v1/trainers/small", &trainer).await;
        service
    }

    /// Processor time that it has used so far.
    pub fn used(&self) -> Used {
        Used::by(self.nlac.child.id())
    }

    /// Runs the job to its end, and returns how long it took.
    pub async fn run(&self, episodes: u32) -> Duration {
        let spec = json!({
            "name": "bench", "environment": { "kind": "help_desk" },
            "model": { "base": MODEL, "engine": "instant", "trainer": "small", "prompts": "desk" },
            "algorithm": { "kind": "nlac", "futures": 1, "rounds": 2, "warmup_iterations": 0,
                "weights": { "bellman": "base", "evaluator": "base", "refiner": "base" },
                "replay": { "batch": episodes } },
            "rollout": { "episodes": episodes, "max_tokens": 8 },
            "optimizer": { "epochs": 1 },
            "lora": { "rank": 4 },
            "health": { "states": 0 },
            "evaluation": { "episodes": 2 * episodes },
            "budget": { "iterations": 1 },
        });
        let begun = Instant::now();
        let sent =
            self.http.post(format!("{}/v1/jobs", self.url)).json(&spec).send().await.unwrap();
        let job: Value = sent.json().await.unwrap();
        let id = job["id"].as_str().unwrap_or_else(|| panic!("{job}"));
        loop {
            let sent = self.http.get(format!("{}/v1/jobs/{id}", self.url)).send().await.unwrap();
            let job: Value = sent.json().await.unwrap();
            match job["status"].as_str().unwrap() {
                "succeeded" => return begun.elapsed(),
                "queued" | "running" => tokio::time::sleep(Duration::from_millis(250)).await,
                _ => panic!("{job}"),
            }
        }
    }

    async fn put(&self, path: &str, body: &Value) {
        let answer = self.http.put(format!("{}{path}", self.url)).json(body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {text}");
    }
}
