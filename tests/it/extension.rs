//! The budget of a job can be raised, also after its end.

use serde_json::json;

use crate::support::{Service, program, small_job};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_succeeded_continues_with_a_larger_budget() {
    let service = Service::start().await;
    let (_, made) = service.post("/v1/jobs", &small_job()).await;
    let id = made["id"].as_str().unwrap();
    let over = service.finished(id).await;
    assert_eq!((&over["status"], &over["iteration"]), (&json!("succeeded"), &json!(2)));
    let route = format!("/v1/jobs/{id}/extend");
    for (body, status) in [
        (json!({}), 422),
        (json!({ "iterations": 1 }), 422),
        (json!({ "iterations": 2 }), 422),
        (json!({ "tokens": 1_000_000 }), 422),
        (json!({ "iteration": 3 }), 422),
    ] {
        let (answered, problem) = service.post(&route, &body).await;
        assert_eq!(answered, status, "{body}: {problem}");
    }
    let words = ["jobs", "extend", id, "--iterations", "3", "--json"];
    let job = program::nlac(&service.url, &words).await.json();
    assert_eq!((&job["status"], &job["finished_at"]), (&json!("running"), &json!(null)), "{job}");
    let over = service.finished(id).await;
    assert_eq!((&over["status"], &over["iteration"]), (&json!("succeeded"), &json!(3)), "{over}");
    let (_, page) = service.get(&format!("/v1/jobs/{id}/checkpoints")).await;
    let online = page["data"].as_array().unwrap().iter().filter(|c| c["role"] == "online");
    let mut versions: Vec<_> = online.map(|c| c["version"].as_i64().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions, [0, 1, 2, 3]);
    let (_, events) = service.get(&format!("/v1/jobs/{id}/events?limit=200")).await;
    let extended = events["data"].as_array().unwrap().iter().find(|e| e["kind"] == "extended");
    let extended = extended.unwrap_or_else(|| panic!("{events}"));
    assert_eq!(
        extended["message"],
        "the budget was extended: iterations from 2 to 3; the job continues"
    );
    service.stop().await;
}
