//! Fills the database of a small job that has run up to as many transitions as are asked for.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection, postgres::PgConnectOptions};

/// Tables with rows for each transition or episode. Their indexes are made when the rows are there.
const LARGE: [&str; 14] = [
    "contexts",
    "critiques",
    "dataset_episodes",
    "episodes",
    "generations",
    "predictions",
    "refinements",
    "replay",
    "replay_draws",
    "rollouts",
    "targets",
    "training_examples",
    "transition_search",
    "transitions",
];
/// Bytes of a transition with all that belongs to it, indexes included, and of the log that is written meanwhile.
const EACH: u64 = 2600;

/// A job's size.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Transitions.
    pub transitions: u64,
    /// Of one iteration.
    pub per_iteration: u64,
}

impl Size {
    /// About so many transitions, in a thousand iterations at most.
    pub fn about(transitions: u64) -> Self {
        let per_iteration = (transitions / 1000 / 40 * 40).max(400);
        Self { transitions: transitions / per_iteration * per_iteration, per_iteration }
    }

    /// Iterations that are generated.
    pub const fn iterations(self) -> u64 {
        self.transitions / self.per_iteration
    }

    /// Bytes on disk.
    pub const fn bytes(self) -> u64 {
        self.transitions * EACH + (300 << 20)
    }
}

async fn connect(options: &PgConnectOptions) -> PgConnection {
    // Foreign keys are not checked: the rows are made to fit each other.
    let settings = "set session_replication_role = replica; set synchronous_commit = off;
        set work_mem = '256MB'; set maintenance_work_mem = '1GB'";
    let mut conn = options.connect().await.unwrap();
    conn.execute(sqlx::raw_sql(settings)).await.unwrap();
    conn
}

async fn say(conn: &mut PgConnection, sql: String) {
    conn.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
}

/// Fills the database; returns how long that took.
pub async fn fill(options: &PgConnectOptions, job: &str, size: Size) -> Duration {
    let begun = Instant::now();
    let told = |what: &str| eprintln!("{:6.0} s: {what}", begun.elapsed().as_secs_f64());
    let (mut one, mut two) = (connect(options).await, connect(options).await);
    let made = include_str!("made.sql")
        .replace("JOB", job)
        .replace("TRANSITIONS", &size.transitions.to_string())
        .replace("PER", &size.per_iteration.to_string());
    say(&mut one, made).await;
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) from pg_index i
         where i.indrelid::regclass::text = any($1) and not i.indisunique order by 1",
    )
    .bind(LARGE.as_slice())
    .fetch_all(&mut one)
    .await
    .unwrap();
    for (name, _) in &indexes {
        say(&mut one, format!("drop index {name}")).await;
    }
    told("the rows of iterations are there");
    let (played, learned) = (include_str!("played.sql"), include_str!("learned.sql"));
    tokio::join!(say(&mut one, played.to_owned()), say(&mut two, learned.to_owned()));
    told("all rows are there");
    let left = Mutex::new(indexes.into_iter().map(|(_, definition)| definition));
    let build = async |conn: &mut PgConnection| {
        while let Some(definition) = { left.lock().unwrap().next() } {
            say(conn, definition).await;
        }
    };
    tokio::join!(build(&mut one), build(&mut two));
    told("all indexes are there");
    say(&mut one, "drop schema size cascade".to_owned()).await;
    say(&mut one, "vacuum analyze".to_owned()).await;
    let bytes: i64 = sqlx::query_scalar("select pg_database_size(current_database())")
        .fetch_one(&mut one)
        .await
        .unwrap();
    told(&format!("the database is filled: {:.2} GB", bytes as f64 / 1e9));
    begun.elapsed()
}
