//! What a trainer's polls may answer, scripted with the bodies of the Tinker API (SDK 0.38).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use nlac::{
    domain::{
        fault::Fault,
        peer::{TrainerKind, TrainerRecord},
    },
    telemetry::Meters,
    trainer::{ModelRole, Run, Tinker, Trainer, TrainerError},
};
use serde_json::{Value, json};

use crate::support::endpoint::Endpoint;

/// A trainer whose n-th poll (from 1) for the saved weights answers by `polled`.
async fn trainer(
    polled: impl Fn(u32) -> (u16, Value) + Send + 'static,
) -> (Endpoint, Box<dyn Run>) {
    let polls = AtomicU32::new(0);
    let server = Endpoint::start(Box::new(move |asked| match asked.path.as_str() {
        "/api/v1/create_session" => (200, json!({ "session_id": "s" })),
        "/api/v1/create_model" => (200, json!({ "request_id": "made", "model_id": "m" })),
        "/api/v1/save_weights" => (200, json!({ "request_id": "saved" })),
        "/api/v1/retrieve_future" if asked.body["request_id"] == "made" => {
            (200, json!({ "model_id": "m" }))
        }
        "/api/v1/retrieve_future" => polled(polls.fetch_add(1, Relaxed) + 1),
        _ => (200, json!({})),
    }))
    .await;
    let record = TrainerRecord::new("t", TrainerKind::Tinker, &server.url, "base");
    let client = Tinker::new(&record, None, &Meters::default()).unwrap();
    let run = client.open(ModelRole::Policy, 8, 1, None).await.unwrap();
    (server, run)
}

const SAVED: &str = "tinker://m/weights/x";

#[tokio::test]
async fn a_poll_that_is_not_answered_yet_or_meets_a_fault_is_repeated() {
    let (server, mut run) = trainer(|number| match number {
        1 => (200, json!({ "type": "try_again", "request_id": "saved", "queue_state": "active" })),
        2 => (429, json!({ "detail": "slow down" })),
        3 => (503, json!({ "detail": "restarting" })),
        4 => (408, json!({ "detail": "Timeout waiting for result" })),
        _ => (200, json!({ "path": SAVED, "type": "save_weights" })),
    })
    .await;
    assert_eq!(run.save_state("x").await.unwrap(), SAVED);
    assert_eq!(server.asked("/api/v1/save_weights").len(), 1, "what has effects is asked once");
}

#[tokio::test]
async fn an_error_in_a_success_is_an_error_of_its_category() {
    let failure = async |category: &str| {
        let answer = json!({ "error": "rank 8 is too high", "category": category });
        let (_server, mut run) = trainer(move |_| (200, answer.clone())).await;
        run.save_state("x").await.unwrap_err()
    };
    let user = failure("user").await;
    assert!(matches!(user, TrainerError::Rejected { .. }), "{user}");
    assert!(user.to_string().contains("rank 8 is too high"), "{user}");
    assert!(matches!(user.fault(), Fault::Fail(_)));
    for category in ["server", "unknown"] {
        let error = failure(category).await;
        assert!(matches!(error, TrainerError::Failed { .. }), "{error}");
        assert!(matches!(error.fault(), Fault::Retry(_)));
    }
}

#[tokio::test]
async fn a_loss_that_is_not_finite_is_not_tried_again() {
    let answer =
        json!({ "detail": "the loss is not finite (NaN or infinity); lower the learning rate" });
    let (_server, mut run) = trainer(move |_| (400, answer.clone())).await;
    let error = run.save_state("x").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Fail(why) if why.contains("learning rate")));
    let answer = json!({ "detail": "out of memory" });
    let (_server, mut run) = trainer(move |_| (400, answer.clone())).await;
    assert!(matches!(run.save_state("x").await.unwrap_err().fault(), Fault::Retry(_)));
}
