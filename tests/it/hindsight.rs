//! Hindsight: what NLAC makes of steps whose episodes reached other goals than the commanded one.

use nlac::embedded::base_model::{BaseModel, Shipped};
use serde_json::{Value, json};

use crate::support::{Place, Service, settings};

async fn all(service: &Service, path: &str) -> Vec<Value> {
    let (status, page) = service.get(path).await;
    assert_eq!(status, 200, "{path}: {page}");
    page["data"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nlac_learns_goals_that_its_episodes_reached_and_the_episodes_stay_as_they_were() {
    let place = Place::new();
    let mut with_model = settings(&place.path().join("service"));
    with_model.base_model = BaseModel::Shipped(Shipped::Playground);
    let service = Service::start_with(&with_model).await;
    let short = json!({ "temperature": 1.0, "max_tokens": 8 });
    let spec = json!({
        "name": "hindsight", "seed": 0,
        "environment": { "kind": "playground", "size": "tiny" },
        "model": { "base": "playground-base", "prompts": "playground" },
        "algorithm": {
            "kind": "nlac", "warmup_iterations": 1,
            "sampling": { "next_action": short, "refiner": short },
            "replay": { "batch": 32, "hindsight": { "strategy": "future", "share": 0.75 } },
        },
        "rollout": { "episodes": 12, "max_tokens": 8 },
        "lora": { "rank": 4 },
        "evaluation": { "every": 100, "episodes": 2, "interim_episodes": 2, "temperature": 1.0, "also": [] },
        "health": { "states": 0 },
        "budget": { "iterations": 2 },
    });
    let (status, job) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 201, "{job}");
    let id = job["id"].as_str().unwrap();
    let job = service.finished(id).await;
    assert_eq!(job["status"], "succeeded", "{job}");

    for share in all(&service, &format!("/v1/jobs/{id}/metrics?name=replay.relabelled")).await {
        let share = share["value"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 0.75, "{share}");
    }
    let mut relabelled = 0;
    for step in all(&service, &format!("/v1/jobs/{id}/transitions?limit=200")).await {
        let path =
            format!("/v1/transitions/{}/critiques?job_id={id}", step["id"].as_str().unwrap());
        let (_, made) = service.get(&path).await;
        let state = step["state"].as_array().unwrap();
        for critique in made["critiques"].as_array().unwrap() {
            let Some(goal) = critique["provenance"]["goal"].as_str() else { continue };
            relabelled += 1;
            // The stored conversation says the goal that was commanded, and the step shows no critique of another one.
            let own = state.last().unwrap()["content"].as_str().unwrap();
            let commanded = own.split_once('\n').unwrap().0.to_lowercase();
            assert!(commanded.starts_with("goal: "), "{own}");
            assert_ne!(commanded, format!("goal: {goal}").to_lowercase());
            assert_ne!(step["annotated_in"], critique["iteration"], "{step}");
        }
    }
    assert!(relabelled > 0);
    service.stop().await;

    let service = Service::start().await;
    let mut spec = spec;
    spec["environment"] = json!({ "kind": "help_desk" });
    spec["model"] = json!({ "base": "help-desk-base", "prompts": "desk" });
    let (status, refused) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 422, "{refused}");
    assert!(refused["errors"].to_string().contains("/algorithm/replay/hindsight"), "{refused}");
    service.stop().await;
}
