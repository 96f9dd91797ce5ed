//! API keys: when they end, what the audit log keeps and how often they may be used.

use std::time::Duration;

use nlac::app::ServiceSettings;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::{
    pages::link,
    support::{
        Service,
        guarded::{Guarded, NOBODY, first_key, header},
        settings, small_job,
    },
};

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
    let everything = guarded.everything().await;
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
    assert_eq!(guarded.revoke(&id).await, (204, Value::Null));
    let of_key = format!("/v1/keys/{id}");
    let (_, revoked) = guarded.get(&guarded.admin, &of_key).await;
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    assert_eq!(page().await.unwrap().status(), 303);
    let (status, problem) = guarded.get(&secret, "/v1/jobs").await;
    assert_eq!((status, problem["detail"].as_str()), (401, Some("this API key was revoked")));
    assert_eq!(guarded.revoke(&id).await.0, 204);
    let (_, again) = guarded.get(&guarded.admin, &of_key).await;
    assert_eq!(again["revoked_at"], revoked["revoked_at"], "a second time changes nothing");
    assert_eq!(guarded.revoke(NOBODY).await.0, 404);

    // Somebody can always make keys.
    let (_, list) = guarded.get(&guarded.admin, "/v1/keys").await;
    let keys = list["data"].as_array().unwrap();
    let admin = keys.iter().find(|key| key["name"] == "admin").unwrap()["id"].as_str().unwrap();
    let (status, problem) = guarded.revoke(admin).await;
    assert_eq!((status, problem["remedy"].as_str()), (409, Some("create another admin key first")));
    guarded.make("second", &["admin"]).await;
    assert_eq!(guarded.revoke(admin).await.0, 204);
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
            let page = refused.text().await.unwrap();
            assert!(
                page.contains("Too many wrong keys") && page.contains("name=\"key\""),
                "{page}"
            );
            break;
        }
        answered += 1;
    }
    assert_eq!(guarded.sign_in(&bob, "").await.status(), 303);
    let (_, log) = guarded.get(&guarded.admin, "/v1/audit?actor=unknown&limit=200").await;
    assert_eq!(log["data"].as_array().unwrap().len(), answered, "the log is not flooded");
    guarded.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_active_key_is_found_behind_many_that_ended() {
    let guarded = Guarded::bare().await;
    let ended = "insert into api_keys
             (id, name, prefix, hash, scopes, requests_per_minute, created_by, revoked_at)
         select ('ffffffff-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'ended ' || n, 'nlac_',
             decode(md5(n::text), 'hex'), '{read}'::text[], 60, 'admin', now()
         from generate_series(1, 200) n";
    guarded.change(ended).await;
    let session = guarded.session(&guarded.admin).await;
    let first = guarded.page("/keys", &session).await.text().await.unwrap();
    assert!(first.contains("200 ended") && !first.contains("Revoke admin"), "{first}");
    let older = link(&first, "Older keys").unwrap();
    let older = guarded.page(&older, &session).await.text().await.unwrap();
    assert!(older.contains("Revoke admin") && link(&older, "Older keys").is_none(), "{older}");
    guarded.service.stop().await;
}
