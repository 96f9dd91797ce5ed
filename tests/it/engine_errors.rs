//! What nlac makes of an engine's errors: it waits for an engine that is away, repeats what may pass, and fails a job for
//! what stays.

use nlac::{
    domain::{
        engine_limits::Limits,
        fault::Fault,
        peer::{EngineKind, EngineRecord},
    },
    engine::{Adapter, Engine, EngineError, Pool},
    telemetry::Meters,
};
use serde_json::json;

use crate::support::endpoint::Endpoint;

fn pool(engine: &Endpoint) -> Pool {
    let urls = std::slice::from_ref(&engine.url);
    let engine = EngineRecord::new("e", EngineKind::Vllm, urls, "m");
    Pool::new(&engine, None, Limits::default(), &Meters::default()).unwrap()
}

/// Loads an adapter twice; the first request to load it is answered by `status`.
async fn loaded_twice(status: u16) -> [Result<(), EngineError>; 2] {
    let mut requests = 0;
    let engine = Endpoint::start(Box::new(move |asked| match asked.path.as_str() {
        "/v1/load_lora_adapter" => {
            requests += 1;
            if requests == 1 { (status, json!("not now")) } else { (200, json!("loaded")) }
        }
        "/v1/models" => (200, json!({ "data": [{ "id": "a", "root": "/adapters/a" }] })),
        other => panic!("asked for {other}"),
    }))
    .await;
    let pool = pool(&engine);
    let adapter = Adapter { name: "a".into(), path: "/adapters/a".into() };
    [pool.load(&adapter).await, pool.load(&adapter).await]
}

#[tokio::test]
async fn an_engine_that_is_away_while_an_adapter_is_loaded_is_waited_for() {
    for status in [429, 502, 503, 504] {
        let [first, second] = loaded_twice(status).await;
        let error = first.unwrap_err();
        assert!(matches!(error.fault(), Fault::Away { .. }), "{status}: {error}");
        second.unwrap();
    }
    let [timeout, _] = loaded_twice(408).await;
    assert!(matches!(timeout.unwrap_err().fault(), Fault::Retry(_)));
    // vLLM answers 500 for an adapter that it cannot use.
    for status in [401, 500] {
        let [rejected, _] = loaded_twice(status).await;
        let error = rejected.unwrap_err();
        assert!(matches!(error, EngineError::Load { .. }), "{status}: {error}");
        assert!(matches!(error.fault(), Fault::Fail(_)), "{status}: {error}");
    }
}
