//! API keys: which routes they open, when they end, what the audit log keeps and how often they may be used.

use std::time::Duration;

use nlac::app::ServiceSettings;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::{
    Service,
    guarded::{Guarded, NOBODY, first_key, header},
    settings, small_job,
};

/// The operations of the contract: method, path, and the scope that it says is needed.
fn operations() -> Vec<(Method, String, Option<String>)> {
    let text = nlac::api::openapi_yaml().unwrap();
    let document: Value = serde_yaml_ng::from_str(&text).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let scope = operation["security"][0]["api_key"][0].as_str().map(ToOwned::to_owned);
            if scope.is_some() {
                for status in ["401", "403", "429"] {
                    assert!(
                        operation["responses"][status].is_object(),
                        "{method} {path}: {status}"
                    );
                }
            }
            all.push((method, filled(path), scope));
        }
    }
    assert!(all.len() > 30);
    all
}

/// A path with something in place of its parameters.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{id}" => NOBODY,
        "{*file}" => "nlac.css",
        part if part.starts_with('{') => "none",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_guarded_and_takes_the_scope_that_it_names() {
    let guarded = Guarded::start().await;
    let (mut open, mut of_agents) = (Vec::new(), Vec::new());
    for (method, path, scope) in operations() {
        let answer = guarded.ask(method.clone(), &path).send().await.unwrap();
        if answer.status() == 401 && scope.is_none() {
            // Agents show keys of their own, and are answered in the format of the API that they speak.
            let refused: Value = answer.json().await.unwrap();
            assert!(refused["error"]["message"].is_string(), "{path}: {refused}");
            of_agents.push(path);
            continue;
        }
        if answer.status() != 401 {
            assert_eq!(scope, None, "{method} {path} is open, but says that it is not");
            open.push(path);
            continue;
        }
        assert!(scope.is_some(), "{method} {path} is guarded, but says that it is not");
        assert_eq!(header(&answer, "content-type"), "application/problem+json");
        assert!(header(&answer, "www-authenticate").starts_with("Bearer"));
        let problem: Value = answer.json().await.unwrap();
        assert!(problem["remedy"].as_str().unwrap().contains("NLAC_API_KEY"), "{problem}");
    }
    assert_eq!(open, ["/healthz", "/openapi.yaml", "/readyz"]);
    of_agents.sort();
    let called = ["chat/completions", "messages", "messages/count_tokens", "models", "responses"];
    assert_eq!(of_agents, called.map(|path| format!("/v1/{path}")));

    let mut open = Vec::new();
    for path in nlac::api::page_paths() {
        let answer = guarded.ask(Method::GET, &filled(path)).send().await.unwrap();
        match answer.status().as_u16() {
            303 => assert!(header(&answer, "location").starts_with("/sign-in"), "{path}"),
            _ => open.push(path),
        }
    }
    assert_eq!(open, ["/sign-in", "/assets/{*file}"]);

    for scope in ["read", "submit", "operate", "admin"] {
        let (_, key) = guarded.make(&format!("may {scope}"), &[scope]).await;
        for (method, path, needed) in operations() {
            let Some(needed) = needed else { continue };
            let covered = scope == "admin" || scope == needed || needed == "read";
            // The body is nothing that any route takes: who may is told that, and nothing is done.
            let (status, problem) = guarded.with(&key, method.clone(), &path, &json!([])).await;
            assert_eq!(
                status != 403,
                covered,
                "{scope}: {method} {path} needs {needed}: {problem}"
            );
            assert_ne!(status, 401, "{scope}: {method} {path}");
        }
        let session = guarded.session(&key).await;
        let page = |path| guarded.ask(Method::GET, path).header("cookie", &session).send();
        assert_eq!(page("/").await.unwrap().status(), 200);
        let keys = page("/keys").await.unwrap();
        assert_eq!(keys.status() == 200, scope == "admin");
        if scope != "admin" {
            assert_eq!(
                (keys.status().as_u16(), header(&keys, "content-type").contains("html")),
                (403, true)
            );
        }
    }
    let answer =
        guarded.ask(Method::GET, "/v1/jobs").header("authorization", "Basic eDp5").send().await;
    assert_eq!(answer.unwrap().status(), 401);
    guarded.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_end_at_once_and_no_secret_is_kept() {
    let guarded = Guarded::start().await;
    let (id, secret) = guarded.make("alice", &["submit", "read", "submit"]).await;
    let (_, key) = guarded.get(&guarded.admin, &format!("/v1/keys/{id}")).await;
    assert_eq!(key["scopes"], json!(["read", "submit"]));
    assert_eq!((&key["created_by"], &key["last_used_at"]), (&json!("admin"), &Value::Null));
    assert!(secret.starts_with(key["prefix"].as_str().unwrap()));
    let refused = [
        (json!({ "name": "alice", "scopes": ["read"] }), 409),
        (json!({ "name": "local", "scopes": ["read"] }), 422),
        (json!({ "name": "nlac", "scopes": ["read"] }), 422),
        (json!({ "name": "bob", "scopes": [] }), 422),
        (json!({ "name": "bob", "scopes": ["all"] }), 422),
        (json!({ "name": "b<b>", "scopes": ["read"] }), 422),
        (json!({ "name": "bob", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z" }), 422),
        (json!({ "name": "bob", "scopes": ["read"], "forever": true }), 422),
    ];
    for (body, expected) in refused {
        let (status, problem) = guarded.with(&guarded.admin, Method::POST, "/v1/keys", &body).await;
        assert_eq!(status, expected, "{body}: {problem}");
    }

    assert_eq!(guarded.get(&secret, "/v1/jobs").await.0, 200);
    let session = guarded.session(&secret).await;
    let page = || guarded.ask(Method::GET, "/").header("cookie", &session).send();
    assert_eq!(page().await.unwrap().status(), 200);
    let (_, key) = guarded.get(&guarded.admin, &format!("/v1/keys/{id}")).await;
    assert!(key["last_used_at"].is_string(), "{key}");

    // Everything that the database holds, as text.
    let everything = everything(&guarded).await;
    let value = session.split_once('=').unwrap().1;
    assert!(everything.contains(&secret[..12]), "the dump sees the keys");
    for hidden in [&secret[13..], &value[5..], &guarded.admin[13..]] {
        assert!(!everything.contains(hidden), "a secret is in a table");
    }
    let (_, list) = guarded.get(&guarded.admin, "/v1/keys").await;
    assert!(!list.to_string().contains(&secret));

    guarded.change("update sessions set expires_at = now()").await;
    assert_eq!(page().await.unwrap().status(), 303, "a session ends");
    let session = guarded.session(&secret).await;
    let page = || guarded.ask(Method::GET, "/").header("cookie", &session).send();
    guarded.change("update api_keys set expires_at = now() where name = 'alice'").await;
    let (status, problem) = guarded.get(&secret, "/v1/jobs").await;
    assert_eq!((status, problem["detail"].as_str()), (401, Some("this API key has expired")));
    assert_eq!(page().await.unwrap().status(), 303, "no session outlives its key");
    assert!(guarded.sign_in(&secret, "").await.text().await.unwrap().contains("has expired"));

    // The name is free again; revocation counts at once, for sessions too.
    let (id, secret) = guarded.make("alice", &["read"]).await;
    let session = guarded.session(&secret).await;
    let page = || guarded.ask(Method::GET, "/").header("cookie", &session).send();
    assert_eq!(page().await.unwrap().status(), 200);
    let (status, revoked) = guarded.revoke(&id).await;
    assert_eq!((status, revoked["revoked_at"].is_string()), (200, true));
    assert_eq!(page().await.unwrap().status(), 303);
    let (status, problem) = guarded.get(&secret, "/v1/jobs").await;
    assert_eq!((status, problem["detail"].as_str()), (401, Some("this API key was revoked")));
    assert_eq!(guarded.revoke(&id).await.1, revoked, "a second time changes nothing");
    assert_eq!(guarded.revoke(NOBODY).await.0, 404);

    // Somebody can always make keys.
    let (_, list) = guarded.get(&guarded.admin, "/v1/keys").await;
    let keys = list["data"].as_array().unwrap();
    let admin = keys.iter().find(|key| key["name"] == "admin").unwrap()["id"].as_str().unwrap();
    let (status, problem) = guarded.revoke(admin).await;
    assert_eq!((status, problem["remedy"].as_str()), (409, Some("create another admin key first")));
    guarded.make("second", &["admin"]).await;
    assert_eq!(guarded.revoke(admin).await.0, 200);
    assert_eq!(guarded.get(&guarded.admin, "/v1/jobs").await.0, 401);

    // Where no admin key works any more, the next start makes one.
    guarded.change("update api_keys set expires_at = now() where name = 'second'").await;
    let Guarded { service, admin, http, place } = guarded;
    service.stop().await;
    let asks = ServiceSettings { sign_in: Some(true), ..settings(place.path()) };
    let service = Service::start_with(&asks).await;
    let fresh = first_key(place.path());
    assert_ne!(fresh, admin);
    let guarded = Guarded { service, admin: fresh, http, place };
    assert_eq!(guarded.get(&guarded.admin, "/v1/keys").await.0, 200);
    guarded.service.stop().await;
}

async fn everything(guarded: &Guarded) -> String {
    let mut conn = guarded.service.app.store.acquire().await.unwrap();
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables where table_schema = 'public'",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    assert!(tables.len() > 20);
    let mut all = String::new();
    for table in tables {
        let rows = format!("select coalesce(string_agg(t::text, ' '), '') from \"{table}\" t");
        let text: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&mut *conn).await.unwrap();
        all += &text;
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_what_is_written_down_and_not_too_often() {
    let guarded = Guarded::start().await;
    let (id, alice) = guarded.make("alice", &["submit"]).await;
    let (_, bob) = guarded.make("bob", &["read"]).await;
    let (status, job) = guarded.with(&alice, Method::POST, "/v1/jobs", &small_job()).await;
    assert_eq!((status, &job["owner"]), (201, &json!("alice")), "{job}");
    let job = job["id"].as_str().unwrap().to_owned();
    let pause = format!("/v1/jobs/{job}/pause");
    assert_eq!(guarded.with(&alice, Method::POST, &pause, &json!(null)).await.0, 200);
    assert_eq!(guarded.with(&bob, Method::POST, &pause, &json!(null)).await.0, 403);
    assert_eq!(guarded.get("nlac_wrong", "/v1/jobs").await.0, 401);
    assert_eq!(guarded.sign_in("nlac_wrong", "").await.status(), 401);
    let session = guarded.session(&bob).await;

    // Owners are shown and found.
    let (_, mine) = guarded.get(&bob, "/v1/jobs?owner=alice").await;
    assert_eq!(mine["data"][0]["id"], job.as_str());
    assert_eq!(guarded.get(&bob, "/v1/jobs?owner=bob").await.1["data"], json!([]));
    let rows = |query: &'static str| guarded.page(query, &session);
    assert!(rows("/jobs/rows?owner=alice").await.text().await.unwrap().contains(" · alice · "));
    assert!(rows("/jobs/rows?owner=bob").await.text().await.unwrap().contains("No job matches"));
    let page = guarded.page(&format!("/jobs/{job}"), &session).await.text().await.unwrap();
    assert!(page.contains("<dt>owner</dt><dd>alice</dd>"));

    let (_, log) = guarded.get(&guarded.admin, "/v1/audit").await;
    let log = log["data"].as_array().unwrap();
    let told: Vec<String> = log
        .iter()
        .rev()
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or("–").to_owned();
            format!("{} {} {} {}", text("actor"), text("method"), text("route"), entry["status"])
        })
        .collect();
    assert_eq!(
        told,
        [
            "admin POST /v1/keys 201",
            "admin POST /v1/keys 201",
            "alice POST /v1/jobs 201",
            "alice POST /v1/jobs/{id}/pause 200",
            "bob POST /v1/jobs/{id}/pause 403",
            "unknown GET /v1/jobs 401",
            "unknown POST /sign-in 401",
            "bob POST /sign-in 303",
        ]
    );
    let entry = |n: usize| &log[log.len() - 1 - n];
    assert_eq!(entry(0)["resource"], id.as_str(), "what was made");
    assert_eq!((&entry(2)["resource"], &entry(2)["key_id"]), (&json!(job), &json!(id)));
    assert_eq!((&entry(4)["resource"], &entry(6)["key_id"]), (&json!(job), &Value::Null));
    let (_, by_alice) = guarded.get(&guarded.admin, "/v1/audit?actor=alice&limit=1").await;
    assert_eq!(by_alice["data"][0], *entry(3));
    let next = by_alice["next"].as_str().unwrap();
    let (_, older) =
        guarded.get(&guarded.admin, &format!("/v1/audit?actor=alice&after={next}")).await;
    assert_eq!(older["data"], json!([entry(2)]));
    let admin = guarded.session(&guarded.admin).await;
    let page = guarded.page(&format!("/audit?resource={job}"), &admin).await.text().await.unwrap();
    assert_eq!(page.matches("<tbody>").count(), 1);
    assert_eq!(page.matches("/v1/jobs/{id}/pause").count(), 2, "alice's and bob's");

    // A stream ends with its key.
    let events = guarded.ask(Method::GET, &format!("/v1/jobs/{job}/events")).bearer_auth(&alice);
    let mut stream = events.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("submitted"));
    guarded.revoke(&id).await;
    let rest = tokio::time::timeout(Duration::from_secs(20), stream.text()).await;
    rest.expect("the stream goes on after its key").unwrap();

    // Each key has its own minute.
    let body = json!({ "name": "eager", "scopes": ["read"], "requests_per_minute": 3 });
    let (_, eager) = guarded.with(&guarded.admin, Method::POST, "/v1/keys", &body).await;
    let eager = eager["secret"].as_str().unwrap();
    // On a slow machine the first may be a while ago when the last is sent.
    let mut answers = Vec::new();
    while answers.len() < 30 && answers.last().is_none_or(|last: &Response| last.status() == 200) {
        answers.push(guarded.ask(Method::GET, "/v1/jobs").bearer_auth(eager).send().await.unwrap());
    }
    assert!(answers.len() > 3, "three are let in");
    let answer = answers.pop().unwrap();
    assert_eq!(
        (answer.status().as_u16(), header(&answer, "content-type").as_str()),
        (429, "application/problem+json")
    );
    assert!((1..=21).contains(&header(&answer, "retry-after").parse::<u64>().unwrap()));
    assert!(
        answer.json::<Value>().await.unwrap()["detail"]
            .as_str()
            .unwrap()
            .contains("3 requests a minute")
    );
    assert_eq!(guarded.get(&bob, "/v1/jobs").await.0, 200);

    // Wrong keys are answered less and less, and shut out nobody.
    let mut answered = 2;
    for _ in 0..60 {
        match guarded.get("nlac_wrong", "/v1/jobs").await.0 {
            401 => answered += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert!((3..60).contains(&answered), "{answered}");
    for _ in 0..20 {
        let refused = guarded.sign_in("nlac_wrong", "").await;
        if refused.status() == 429 {
            assert!(!header(&refused, "retry-after").is_empty());
            break;
        }
        answered += 1;
    }
    assert_eq!(guarded.sign_in(&bob, "").await.status(), 303);
    let (_, log) = guarded.get(&guarded.admin, "/v1/audit?actor=unknown&limit=200").await;
    assert_eq!(log["data"].as_array().unwrap().len(), answered, "the log is not flooded");
    guarded.service.stop().await;
}
