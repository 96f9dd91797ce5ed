//! Every page and every list, and how often a large table was read as a whole for them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use reqwest::Client;
use serde_json::Value;
use sqlx::PgConnection;

/// Rows that stand for the others: in the middle of all that there are.
pub struct Chosen {
    pub job: String,
    pub episode: String,
    pub transition: String,
    pub checkpoint: String,
}

impl Chosen {
    /// Looks for them.
    pub async fn of(conn: &mut PgConnection, job: &str) -> Self {
        let (episode, transition, checkpoint) = sqlx::query_as(
            "select
                 (select episode_id::text from rollouts where job_id = $1::uuid and purpose = 'collect'
                  order by episode_id offset (select count(*) / 2 from rollouts) limit 1),
                 (select transition_id::text from transition_search where job_id = $1::uuid and changed
                  order by transition_id desc limit 1),
                 (select id::text from checkpoints where job_id = $1::uuid and role = 'online'
                  order by version desc limit 1)",
        )
        .bind(job)
        .fetch_one(conn)
        .await
        .unwrap();
        Self { job: job.to_owned(), episode, transition, checkpoint }
    }

    /// A path with rows in place of its parameters.
    fn filled(&self, path: &str) -> String {
        let mut before = "";
        let parts = path.split('/').map(|part| {
            let of = std::mem::replace(&mut before, part);
            match (of, part) {
                ("jobs", "{id}") => &*self.job,
                ("episodes", "{id}") => &*self.episode,
                ("transitions", "{id}") => &*self.transition,
                ("checkpoints", "{id}") => &*self.checkpoint,
                ("datasets", "{name}") => "logs",
                ("prompts", "{name}") => "desk",
                ("engines" | "trainers", "{name}") => "local",
                (_, "{id}") => "01a1fd10-c6f8-70d2-aeb5-634f4dcb6085",
                (_, "{*file}") => "nlac.css",
                (_, part) if part.starts_with('{') => "none",
                (_, part) => part,
            }
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// All that can be read, and how people and programs search and page.
    pub fn paths(&self) -> Vec<String> {
        let document: Value = serde_yaml_ng::from_str(&nlac::api::openapi_yaml().unwrap()).unwrap();
        let documented = document["paths"].as_object().unwrap().iter();
        let read = documented.filter(|(_, operations)| operations["get"].is_object());
        let read = read.map(|(path, _)| path.as_str()).chain(nlac::api::page_paths());
        let mut paths: Vec<String> = read.map(|path| self.filled(path)).collect();
        let replaced = |path: &&str| {
            path.replace("JOB", &self.job)
                .replace("EPISODE", &self.episode)
                .replace("TRANSITION", &self.transition)
        };
        paths.extend(MORE.iter().map(replaced));
        paths
    }
}

/// Filters, words, long pages, and pages far from the beginning.
const MORE: &[&str] = &[
    "/search?verdict=yes&success=false",
    "/search?verdict=no&success=true&changed=true",
    "/search?target_status=misquoted",
    "/search?target_status=leaked",
    "/search?from_iteration=3&to_iteration=5",
    "/search?q=refund",
    "/search?q=refund+billing+desk",
    "/search?q=%22refund+please%22",
    "/search?q=%22no+such+phrase%22",
    "/search?q=zebra",
    "/search?q=refund+-card&verdict=no&success=false",
    "/search?job=JOB&verdict=no&changed=true",
    "/search?job=JOB&q=refund",
    "/search?job=JOB&q=zebra",
    "/search?changed=true&after=TRANSITION",
    "/episodes/EPISODE?step=1",
    "/playground?transition=TRANSITION&two=true",
    "/jobs/JOB/episodes?purpose=evaluate",
    "/jobs/JOB/versus",
    "/datasets/logs?before=20",
    "/evaluations?list=all",
    "/audit?actor=nobody",
    "/v1/transitions?limit=200&changed=true",
    "/v1/transitions?limit=200&q=refund",
    "/v1/jobs/JOB/transitions?limit=200",
    "/v1/jobs/JOB/transitions?limit=200&to_iteration=3",
    "/v1/jobs/JOB/transitions?limit=200&after=TRANSITION",
    "/v1/jobs/JOB/episodes?limit=200&purpose=collect",
    "/v1/jobs/JOB/episodes?limit=200&after=EPISODE",
    "/v1/jobs/JOB/episodes?limit=200&before=EPISODE",
    "/v1/datasets/logs/episodes?limit=200",
    "/v1/datasets/logs/episodes?limit=200&after=EPISODE",
    "/v1/jobs/JOB/iterations?limit=200",
    "/v1/jobs/JOB/checkpoints?limit=200",
    "/v1/jobs/JOB/events?limit=200",
    "/v1/jobs/JOB/metrics?limit=5000",
    "/v1/jobs/JOB/export?form=sft",
    "/v1/jobs/JOB/export?format=parquet",
];

/// Asks for a path: the status, and when the first byte came. An export is broken off there.
pub async fn ask(http: &Client, url: &str, path: &str) -> (u16, Duration) {
    let begun = Instant::now();
    let mut answer = http.get(format!("{url}{path}")).send().await.unwrap();
    let status = answer.status().as_u16();
    answer.chunk().await.unwrap();
    let first = begun.elapsed();
    if !path.contains("/export") {
        answer.bytes().await.unwrap();
    }
    (status, first)
}

/// How often each table with at least `rows` rows was read as a whole so far.
pub async fn whole_reads(conn: &mut PgConnection, rows: u64) -> BTreeMap<String, i64> {
    // Servers that have ended have reported all that they did.
    for _ in 0..400 {
        let others: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
        )
        .fetch_one(&mut *conn)
        .await
        .unwrap();
        if others == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "select s.relname::text, s.seq_scan from pg_stat_user_tables s join pg_class c on c.oid = s.relid
         where c.reltuples >= $1",
    )
    .bind(rows as f32)
    .fetch_all(conn)
    .await
    .unwrap();
    counted.into_iter().collect()
}
