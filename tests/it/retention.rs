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

/// References that are looked up by reading the whole table when what they name is deleted.
const UNINDEXED: &str = "select coalesce(string_agg(c.conrelid::regclass || ': ' || c.conname, ', '), '')
    from pg_constraint c where c.contype = 'f' and not exists (
        select from pg_index i where i.indrelid = c.conrelid and i.indpred is null and i.indkey[0] = c.conkey[1])";
/// Tables that have rows of jobs, each with a query that counts them.
const OF_JOBS: &str = "select table_name, format('select count(*) from %I', table_name)
    from information_schema.columns
    where table_schema = 'public' and column_name in ('job_id', 'iteration_id', 'transition_id', 'item_id')
    union select 'jobs', 'select count(*) from jobs'";

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_deleted_with_all_that_belongs_to_it_and_nothing_else() {
    let service = Service::start().await;
    let jobs = service.two_jobs().await;
    let mut conn = service.app.store.acquire().await.unwrap();
    let unindexed: String = sqlx::query_scalar(UNINDEXED).fetch_one(&mut *conn).await.unwrap();
    assert_eq!(unindexed, "", "an index for each, or its job takes hours to delete");

    let tables: Vec<(String, String)> =
        sqlx::query_as(OF_JOBS).fetch_all(&mut *conn).await.unwrap();
    let mut before = Vec::new();
    for (_, count) in &tables {
        let count = sqlx::AssertSqlSafe(count.clone());
        before.push(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut *conn).await.unwrap());
    }
    for (gone, job) in jobs.iter().enumerate() {
        let id: uuid::Uuid = job["id"].as_str().unwrap().parse().unwrap();
        let deleted = sqlx::query("delete from jobs where id = $1").bind(id).execute(&mut *conn);
        assert_eq!(deleted.await.unwrap().rows_affected(), 1);
        for ((table, count), before) in tables.iter().zip(&before) {
            let count = sqlx::AssertSqlSafe(count.clone());
            let left: i64 = sqlx::query_scalar(count).fetch_one(&mut *conn).await.unwrap();
            if gone == 0 {
                assert!(left < *before || *before == 0, "{table}: {left} of {before}");
                assert!(left > 0 || *before == 0, "{table}: what is the other job's stays");
            } else {
                assert_eq!(left, 0, "{table}");
            }
        }
    }
    drop(conn);
    service.stop().await;
}
