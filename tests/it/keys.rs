//! Sign-in: who is let in where, by key or by session, and what is kept of it.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use nlac::{
    app::{App, AppError, ServiceSettings},
    domain::access::Secret,
};
use reqwest::{Client, Method, Response, redirect::Policy};
use serde_json::{Value, json};

use crate::support::{Place, Service, settings, small_job};

const NOBODY: &str = "0197e2a0-0000-7000-8000-000000000000";

/// A service that asks for keys, and its first admin key.
struct Guarded {
    service: Service,
    admin: String,
    http: Client,
    place: Place,
}

impl Guarded {
    async fn start() -> Self {
        let place = Place::new();
        let asks = ServiceSettings { sign_in: Some(true), ..settings(place.path()) };
        let service = Service::start_with(&asks).await;
        let admin = first_key(place.path());
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { service, admin, http, place }
    }

    fn ask(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.service.url))
    }

    async fn with(&self, key: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.ask(method.clone(), path).bearer_auth(key);
        let request = if method == Method::GET { request } else { request.json(body) };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn get(&self, key: &str, path: &str) -> (u16, Value) {
        self.with(key, Method::GET, path, &Value::Null).await
    }

    /// A key with these scopes: its id and its secret.
    async fn make(&self, name: &str, scopes: &[&str]) -> (String, String) {
        let body = json!({ "name": name, "scopes": scopes });
        let (status, made) = self.with(&self.admin, Method::POST, "/v1/keys", &body).await;
        assert_eq!(status, 201, "{made}");
        (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
    }

    async fn revoke(&self, id: &str) -> (u16, Value) {
        let path = format!("/v1/keys/{id}");
        self.with(&self.admin, Method::DELETE, &path, &Value::Null).await
    }

    async fn sign_in(&self, key: &str, back: &str) -> Response {
        let form = serde_urlencoded::to_string([("key", key), ("return", back)]).unwrap();
        let request = self.ask(Method::POST, "/sign-in").body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.header("origin", &self.service.url).send().await.unwrap()
    }

    /// The cookie of a new session.
    async fn session(&self, key: &str) -> String {
        cookie(&self.sign_in(key, "").await)
    }

    async fn change(&self, statement: &'static str) {
        let mut conn = self.service.app.store.acquire().await.unwrap();
        let done = sqlx::query(statement).execute(&mut *conn).await.unwrap();
        assert!(done.rows_affected() > 0, "{statement}");
    }
}

fn first_key(data: &Path) -> String {
    let path = data.join("admin-key");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

fn header(answer: &Response, name: &str) -> String {
    let value = answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    value.unwrap_or_default()
}

fn cookie(answer: &Response) -> String {
    let set = header(answer, "set-cookie");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

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
    let mut open = Vec::new();
    for (method, path, scope) in operations() {
        let answer = guarded.ask(method.clone(), &path).send().await.unwrap();
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
    assert_eq!((status, problem["remedy"].as_str()), (409, Some("make another admin key first")));
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
async fn pages_sign_in_and_out_and_obey_no_other_site() {
    let guarded = Guarded::start().await;
    let url = &guarded.service.url;
    let answer = guarded.ask(Method::GET, "/search?q=a b").send().await.unwrap();
    assert_eq!(header(&answer, "location"), "/sign-in?return=%2Fsearch%3Fq%3Da%2520b");
    let form = guarded.ask(Method::GET, &header(&answer, "location")).send().await.unwrap();
    assert!(form.text().await.unwrap().contains("value=\"/search?q=a%20b\""));
    for (back, comes) in [
        ("/search?q=a%20b", "/search?q=a%20b"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example", "/"),
        ("/ok\r\nx: y", "/"),
    ] {
        let answer = guarded.sign_in(&guarded.admin, back).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "location").as_str()), (303, comes));
    }
    // The cookie goes nowhere but here, and where there is https only by it.
    let secure = guarded.ask(Method::POST, "/sign-in").header("x-forwarded-proto", "https");
    let secure = secure.form_body(&[("key", &guarded.admin)]).send().await.unwrap();
    let set = header(&secure, "set-cookie");
    assert!(set.starts_with("__Host-nlac_session=") && set.contains("; Secure"), "{set}");
    let session = cookie(&secure);
    assert_eq!(get(&guarded, "/keys", &session).await.status(), 200, "under this name too");
    // Over https another host could have set a cookie without the prefix.
    let planted = session.replace("__Host-", "");
    let over_https = guarded.ask(Method::GET, "/keys").header("x-forwarded-proto", "https");
    let answer = over_https.header("cookie", planted).send().await.unwrap();
    assert_eq!(answer.status(), 303, "signed out");

    let session = guarded.session(&guarded.admin).await;
    let jobs = get(&guarded, "/", &session).await.text().await.unwrap();
    assert!(jobs.contains("signed in with the API key admin") && jobs.contains("href=\"/keys\""));

    // Who acts by the session must be on a page of ours.
    let path = format!("/v1/jobs/{NOBODY}/cancel");
    let cancel = |headers: &[(&str, &str)]| {
        let request = guarded.ask(Method::POST, &path).header("cookie", &session);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send()
    };
    for (headers, expected) in [
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("sec-fetch-site", "cross-site"), ("origin", url.as_str())], 403),
        (vec![("sec-fetch-site", "same-site")], 403),
        (vec![("origin", url.as_str())], 404),
        (vec![("sec-fetch-site", "same-origin")], 404),
    ] {
        assert_eq!(cancel(&headers).await.unwrap().status(), expected, "{headers:?}");
    }
    // A service without sign-in obeys no other site either.
    let evil = guarded.ask(Method::POST, "/sign-in").header("origin", "https://evil.example");
    assert_eq!(evil.send().await.unwrap().status(), 403);

    // The page makes a key, shows it once, and revokes it.
    let form = [("name", "bob"), ("scope", "read"), ("days", "30"), ("per_minute", "600")];
    let post = |path: &str| {
        guarded.ask(Method::POST, path).header("cookie", &session).header("origin", url)
    };
    let made = post("/keys").form_body(&form).send().await.unwrap();
    assert_eq!(
        (made.status().as_u16(), header(&made, "cache-control").as_str()),
        (201, "no-store")
    );
    let text = made.text().await.unwrap();
    let secret = text.split("id=\"secret\" tabindex=\"0\">").nth(1).unwrap();
    let secret = secret.split('<').next().unwrap().to_owned();
    assert_eq!(guarded.get(&secret, "/v1/jobs").await.0, 200);
    assert!(!get(&guarded, "/keys", &session).await.text().await.unwrap().contains(&secret));
    let again = post("/keys").form_body(&form).send().await.unwrap();
    assert_eq!(again.status(), 409);
    assert!(again.text().await.unwrap().contains("there is a key called bob already"));
    let (_, list) = guarded.get(&guarded.admin, "/v1/keys?limit=1").await;
    assert_eq!((&list["data"][0]["name"], list["next"].is_string()), (&json!("bob"), true));
    let revoke = format!("/keys/{}/revoke", list["data"][0]["id"].as_str().unwrap());
    assert_eq!(post(&revoke).send().await.unwrap().status(), 303);
    assert_eq!(guarded.get(&secret, "/v1/jobs").await.0, 401);

    // After signing out nothing is shown; what polls is led to the sign-in as a whole page.
    let out = post("/sign-out").send().await.unwrap();
    assert_eq!(header(&out, "location"), "/sign-in");
    assert!(header(&out, "set-cookie").contains("Max-Age=0"));
    assert_eq!(get(&guarded, "/", &session).await.status(), 303);
    let poll = guarded.ask(Method::GET, "/jobs/rows").header("cookie", &session);
    let poll = poll.header("hx-request", "true").header("hx-current-url", format!("{url}/?q=a"));
    let poll = poll.send().await.unwrap();
    assert_eq!(poll.status(), 401);
    assert_eq!(header(&poll, "hx-redirect"), "/sign-in?return=%2F%3Fq%3Da");
    assert!(!poll.text().await.unwrap().contains("<form"));
    guarded.service.stop().await;
}

async fn get(guarded: &Guarded, path: &str, session: &str) -> Response {
    guarded.ask(Method::GET, path).header("cookie", session).send().await.unwrap()
}

/// Forms, which this client is built without.
trait FormBody {
    fn form_body(self, pairs: &[(&str, &str)]) -> Self;
}

impl FormBody for reqwest::RequestBuilder {
    fn form_body(self, pairs: &[(&str, &str)]) -> Self {
        let kind = "application/x-www-form-urlencoded";
        self.header("content-type", kind).body(serde_urlencoded::to_string(pairs).unwrap())
    }
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
    let rows = |query: &'static str| get(&guarded, query, &session);
    assert!(rows("/jobs/rows?owner=alice").await.text().await.unwrap().contains(" · alice · "));
    assert!(rows("/jobs/rows?owner=bob").await.text().await.unwrap().contains("No job matches"));
    let page = get(&guarded, &format!("/jobs/{job}"), &session).await.text().await.unwrap();
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
    let page = get(&guarded, &format!("/audit?resource={job}"), &admin).await.text().await.unwrap();
    assert_eq!(page.matches("<tbody>").count(), 1);
    assert_eq!(page.matches("/v1/jobs/{id}/pause").count(), 2, "alice's and bob's");

    // A stream ends with its key.
    let events = guarded.ask(Method::GET, &format!("/v1/jobs/{job}/events")).bearer_auth(&alice);
    let stream = events.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    guarded.revoke(&id).await;
    let rest = tokio::time::timeout(Duration::from_secs(20), stream.text()).await;
    assert!(rest.expect("the stream goes on after its key").unwrap().contains("submitted"));

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
            .contains("3 times a minute")
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

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_is_off_on_loopback_alone_and_the_command_line_sends_keys() {
    let settings_at = |listen: &str, sign_in| ServiceSettings {
        listen: listen.parse().unwrap(),
        sign_in,
        ..ServiceSettings::default()
    };
    for (listen, chosen, required) in [
        ("127.0.0.1:8470", None, false),
        ("[::1]:8470", None, false),
        ("0.0.0.0:8470", None, true),
        ("[::]:8470", None, true),
        ("10.0.0.1:8470", None, true),
        ("127.0.0.1:8470", Some(true), true),
        ("0.0.0.0:8470", Some(false), false),
    ] {
        assert_eq!(settings_at(listen, chosen).sign_in_required(), required, "{listen} {chosen:?}");
    }

    let place = Place::new();
    let given = "a-key-that-came-from-the-environment-0123456789";
    let asks = |key: &str| ServiceSettings {
        sign_in: Some(true),
        admin_key: Some(Secret::from(key.to_owned())),
        local_peers: false,
        ..settings(place.path())
    };
    assert!(!format!("{:?}", asks(given)).contains(given), "settings do not show it");
    assert!(matches!(App::start(&asks("short")).await, Err(AppError::AdminKey)));
    let service = Service::start_with(&asks(given)).await;
    assert!(!place.path().join("admin-key").exists(), "the one that was given is enough");

    let run = |key: Option<&str>, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nlac"));
        command.args(arguments).env("NLAC_SERVER", &service.url).env_remove("NLAC_API_KEY");
        if let Some(key) = key {
            command.env("NLAC_API_KEY", key);
        }
        let done = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.success(), text(&done.stdout), text(&done.stderr))
    };
    let (done, _, error) = run(None, &["jobs", "list"]);
    assert!(!done && error.contains("NLAC_API_KEY"), "{error}");
    let (done, secret, error) =
        run(Some(given), &["keys", "create", "ci", "--scope", "submit,operate", "--days", "7"]);
    assert!(done && secret.starts_with("nlac_"), "{error}");
    let secret = secret.trim();
    assert!(run(Some(secret), &["jobs", "list"]).0);
    assert!(run(None, &["jobs", "list", "--owner", "ci", "--api-key", secret]).0);
    let (done, _, error) = run(Some(secret), &["keys", "list"]);
    assert!(!done && error.contains("needs the scope admin"), "{error}");
    let (_, list, _) = run(Some(given), &["keys", "list"]);
    assert!(list.contains("submit,operate") && !list.contains(secret), "{list}");
    let (_, help, _) = run(Some(given), &["keys", "list", "--help"]);
    assert!(help.contains("NLAC_API_KEY") && !help.contains(given), "{help}");
    assert!(run(Some(given), &["keys", "revoke", "ci"]).0);
    assert!(!run(Some(secret), &["jobs", "list"]).0);
    let (_, list, _) = run(Some(given), &["keys", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
    let (done, _, error) = run(Some(given), &["keys", "revoke", "ci"]);
    assert!(!done && error.contains("nlac keys list"), "{error}");

    // Without sign-in everybody is the same, and is written down as such.
    service.stop().await;
    let service = Service::start_with(&ServiceSettings { sign_in: None, ..asks(given) }).await;
    let (status, made) =
        service.post("/v1/keys", &json!({ "name": "later", "scopes": ["read"] })).await;
    assert_eq!((status, &made["created_by"]), (201, &json!("local")));
    let (_, log) = service.get("/v1/audit?limit=1").await;
    assert_eq!(
        (&log["data"][0]["actor"], &log["data"][0]["key_id"]),
        (&json!("local"), &Value::Null)
    );
    service.stop().await;
}
