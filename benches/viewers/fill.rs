//! A full database: a small job that really runs, then its rows again until there are enough.

use nlac::app::App;
use serde_json::{Value, json};

/// Copies of the job that are one long job.
const PER: i64 = 40;
const ITERATIONS: i64 = 8;

/// The job that is run; what it writes is what a help desk's job writes.
pub fn spec(name: &str, iterations: i64) -> Value {
    json!({
        "name": name, "environment": { "kind": "help_desk" },
        "model": { "base": "help-desk-base", "prompts": "desk" },
        "algorithm": { "kind": "nlac", "warmup_iterations": 1,
            "weights": { "bellman": "base", "evaluator": "base", "refiner": "base" },
            "replay": { "batch": 64 } },
        "rollout": { "episodes": 64, "max_tokens": 8 }, "optimizer": { "epochs": 1 },
        "health": { "states": 8 },
        "evaluation": { "every": 4, "episodes": 20, "interim_episodes": 10, "also": [0] },
        "budget": { "iterations": iterations },
    })
}

/// Fills the database up to this many transitions, and how many there are.
pub async fn fill(app: &App, url: &str, wanted: i64) -> i64 {
    let count = "select count(*) from transitions";
    let pool = app.store.pool();
    let there: i64 = sqlx::query_scalar(count).fetch_one(pool).await.unwrap();
    if there >= wanted {
        return there;
    }
    assert_eq!(there, 0, "the database holds something else; choose another --data-dir");
    let id = super::job::run(url, &spec("filled", ITERATIONS)).await.0;
    println!("job {id} has run");
    let one: i64 = sqlx::query_scalar(count).fetch_one(pool).await.unwrap();
    let copies = (wanted - one + one - 1) / one;
    let mut conn = pool.acquire().await.unwrap();
    sqlx::raw_sql(include_str!("multiply.sql")).execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("set session_replication_role = replica; set synchronous_commit = off")
        .execute(&mut *conn)
        .await
        .unwrap();
    let call = format!("call pg_temp.multiply({copies}, {PER}, {})", ITERATIONS + 1);
    sqlx::raw_sql(sqlx::AssertSqlSafe(call)).execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("set session_replication_role = origin").execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("analyze").execute(&mut *conn).await.unwrap();
    sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
}

/// Pages of some jobs, episodes and searches, each with the name of its kind.
pub async fn pages(app: &App) -> Vec<(&'static str, String)> {
    let pool = app.store.pool();
    let jobs: Vec<uuid::Uuid> = sqlx::query_scalar("select id from jobs order by id desc limit 8")
        .fetch_all(pool)
        .await
        .unwrap();
    let some = "select id from episodes where purpose = 'collect' order by id desc limit 40";
    let episodes: Vec<uuid::Uuid> = sqlx::query_scalar(some).fetch_all(pool).await.unwrap();
    let mut pages = Vec::new();
    for job in &jobs {
        pages.extend([
            ("jobs", "/".to_owned()),
            ("jobs, filtered", "/jobs/rows?q=filled&status=succeeded".to_owned()),
            ("fleet", "/fleet".to_owned()),
            ("job", format!("/jobs/{job}")),
            ("job, fragment", format!("/jobs/{job}/live")),
            ("job, episodes", format!("/jobs/{job}/episodes")),
            ("job, checkpoints", format!("/jobs/{job}/checkpoints")),
            ("job, events", format!("/jobs/{job}/events")),
            ("compare", format!("/compare?job={}&job={}", jobs[0], job)),
            ("search, everywhere", "/search?verdict=yes&success=false".to_owned()),
            ("search, words", "/search?q=refund+billing".to_owned()),
            ("search, of a job", format!("/search?job={job}&verdict=no&changed=true")),
            ("search, nothing", "/search?q=zebra".to_owned()),
        ]);
    }
    pages.extend(episodes.iter().map(|id| ("episode", format!("/episodes/{id}"))));
    pages
}
