//! What belongs to no job goes when it is old, and only then.

use std::time::Duration;

use nlac::{
    app::ServiceSettings,
    domain::retention::{Keep, Retention},
};
use serde_json::json;

use crate::support::{Place, Service, settings, small_job};

/// Runs SQL on a service's database, and gives the number that it answers.
async fn number(service: &Service, sql: &'static str) -> i64 {
    let mut conn = service.app.store.acquire().await.unwrap();
    sqlx::query_scalar(sql).fetch_one(&mut *conn).await.unwrap()
}

/// Waits until a query answers 0.
async fn none_left(service: &Service, sql: &'static str) {
    for _ in 0..200 {
        if number(service, sql).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("after ten seconds: {sql}");
}

const ENTRIES: &str = "select count(*) from audit";
const OLD_ENTRIES: &str = "select count(*) from audit where at < now() - interval '1 year'";
const DELIVERIES: &str = "select count(*) from webhook_deliveries";
const OLD_DELIVERIES: &str =
    "select count(*) from webhook_deliveries where settled_at < now() - interval '30 days'";
const ENDED: &str = "select count(*) from sessions where expires_at <= now()";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_old_and_nobodys_is_removed() {
    let place = Place::new();
    let keep = |retention| ServiceSettings { retention, ..settings(place.path()) };
    let service = Service::start_with(&settings(place.path())).await;
    let (status, _) = service.post("/v1/webhooks", &json!({ "url": "http://127.0.0.1:9" })).await;
    assert_eq!(status, 201);
    let (_, job) = service.post("/v1/jobs", &small_job()).await;
    let cancel = format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap());
    assert_eq!(service.post(&cancel, &json!({})).await.0, 200);
    let (status, _) = service.post("/v1/keys", &json!({ "name": "one", "scopes": ["read"] })).await;
    assert_eq!(status, 201);
    // Two entries, one delivery and one session grow old.
    let aged = "with entries as (
             update audit set at = now() - interval '366 days'
             where id in (select id from audit order by id limit 2) returning 1
         ), deliveries as (
             update webhook_deliveries set state = 'failed', settled_at = now() - interval '31 days'
             where event_id = (select min(event_id) from webhook_deliveries) returning 1
         ), sessions as (
             insert into sessions (id, hash, key_id, expires_at)
             select gen_random_uuid(), 'x', id, now() - interval '1 second' from api_keys returning 1
         )
         select (select count(*) from entries) + (select count(*) from deliveries)
             + (select count(*) from sessions)";
    assert_eq!(number(&service, aged).await, 4);
    let (entries, deliveries) =
        (number(&service, ENTRIES).await, number(&service, DELIVERIES).await);
    assert!(entries > 2 && deliveries > 1, "{entries} {deliveries}");
    service.stop().await;

    let forever = Retention { audit: Keep::Forever, deliveries: Keep::Forever };
    let service = Service::start_with(&keep(forever)).await;
    none_left(&service, ENDED).await;
    assert_eq!(number(&service, OLD_ENTRIES).await, 2);
    assert_eq!(number(&service, OLD_DELIVERIES).await, 1);
    service.stop().await;

    let service = Service::start_with(&keep(Retention::default())).await;
    none_left(&service, OLD_ENTRIES).await;
    none_left(&service, OLD_DELIVERIES).await;
    assert_eq!(number(&service, ENTRIES).await, entries - 2);
    assert_eq!(number(&service, DELIVERIES).await, deliveries - 1);
    service.stop().await;
}
