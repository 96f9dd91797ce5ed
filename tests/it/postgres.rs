//! The private cluster: kept over restarts, adopted after a crash, never shared, never half-opened.

use std::time::Duration;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nlac::embedded::postgres::{Postgres, PostgresError};
use sqlx::{Connection, PgConnection};

use crate::support::{Place, Service, kept, settings, small_job, until};

async fn connect(postgres: &Postgres) -> PgConnection {
    PgConnection::connect_with(postgres.options()).await.unwrap()
}

#[tokio::test]
async fn data_survives_a_stop_and_an_orphan_is_adopted() {
    let place = Place::new();
    let root = place.path().join("postgres");
    let first = Postgres::start(&root, true).await.unwrap();
    assert!(!first.adopted());
    let mut conn = connect(&first).await;
    sqlx::query("create table kept (n int)").execute(&mut conn).await.unwrap();
    let fsync: String = sqlx::query_scalar("show fsync").fetch_one(&mut conn).await.unwrap();
    assert_eq!(fsync, "on");
    let listens: String =
        sqlx::query_scalar("show listen_addresses").fetch_one(&mut conn).await.unwrap();
    assert_eq!(listens, "", "nothing but its socket");
    conn.close().await.unwrap();

    let second = Postgres::start(&root, true).await;
    assert!(matches!(second, Err(PostgresError::InUse(_))), "the directory is locked");
    first.stop().await.unwrap();

    let again = Postgres::start(&root, true).await.unwrap();
    let mut conn = connect(&again).await;
    sqlx::query("insert into kept values (1)").execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    again.stop().await.unwrap();
    assert!(!root.join("data/postmaster.pid").exists(), "it was stopped cleanly");
}

/// `NLAC_RECOVERY_SECONDS=65` lets it recover for longer than the minute that another start may take.
#[tokio::test]
async fn one_that_recovers_is_adopted_and_waited_for() {
    let seconds = std::env::var("NLAC_RECOVERY_SECONDS").unwrap_or_else(|_| "5".into());
    let place = Place::new();
    let root = place.path().join("data/postgres");
    Postgres::start(&root, true).await.unwrap().stop().await.unwrap();
    // It looks for archived log first, which takes long.
    let data = root.join("data");
    std::fs::write(data.join("recovery.signal"), "").unwrap();
    let settings = data.join("postgresql.auto.conf");
    let text = std::fs::read_to_string(&settings).unwrap();
    let slow = format!(
        "hot_standby = off\nrestore_command = 'test -e asked || {{ touch asked; sleep {seconds}; }}; false'\n"
    );
    std::fs::write(&settings, text + &slow).unwrap();
    let mut first = std::process::Command::new(env!("CARGO_BIN_EXE_nlac"))
        .args(["migrate", "--data-dir"])
        .arg(place.path().join("data"))
        .env_remove("DATABASE_URL")
        .spawn()
        .unwrap();
    until("it recovers", async || data.join("asked").exists().then_some(())).await;
    first.kill().unwrap();
    first.wait().unwrap();

    let postgres = Postgres::start(&root, true).await.unwrap();
    assert!(postgres.adopted());
    let mut conn = connect(&postgres).await;
    let recovers: bool =
        sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(&mut conn).await.unwrap();
    assert!(!recovers);
    conn.close().await.unwrap();
    // An orphan may stay a zombie where nobody waits for it.
    let _ = tokio::time::timeout(Duration::from_secs(5), postgres.stop()).await;
}

#[tokio::test]
async fn a_cluster_of_another_version_is_refused_in_one_sentence() {
    let place = Place::new();
    let root = place.path().join("postgres");
    Postgres::start(&root, false).await.unwrap().stop().await.unwrap();
    std::fs::write(root.join("data/PG_VERSION"), "9\n").unwrap();
    let Err(error) = Postgres::start(&root, false).await else { panic!("it started") };
    let text = error.to_string();
    assert!(text.contains("created by Postgres 9") && text.contains("--data-dir"), "{text}");
}

#[tokio::test]
async fn a_half_made_cluster_is_in_nobodys_way() {
    let place = Place::new();
    let root = place.path().join("postgres");
    let half = root.join("partial-0123abcd");
    std::fs::create_dir_all(half.join("base")).unwrap();
    std::fs::write(half.join("PG_VERSION"), "15\n").unwrap();
    std::fs::write(root.join("password"), "stale").unwrap();
    let postgres = Postgres::start(&root, false).await.unwrap();
    connect(&postgres).await.close().await.unwrap();
    assert!(!half.exists());
    postgres.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_dies_under_a_job_is_started_again() {
    let place = Place::new();
    let service = Service::on_its_own(&settings(place.path())).await;
    let (_, job) = service.post("/v1/jobs", &small_job()).await;
    let job = kept::id(&job);
    let store = &service.app.store;
    kept::reaches(store, job, 1).await;
    let file = place.path().join("postgres/data/postmaster.pid");
    let pid = || std::fs::read_to_string(&file).ok()?.lines().next()?.parse().ok();
    let first: Option<i32> = pid();
    kill(Pid::from_raw(first.unwrap()), Signal::SIGKILL).unwrap();
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let answer = service.http.get(format!("{}/readyz", service.url)).send().await.unwrap();
        if pid() != first && answer.status().is_success() {
            break;
        }
    }
    assert_ne!(pid(), first);
    kept::over(store, job, Duration::from_secs(100)).await;
    kept::whole(store, job).await;
    service.stop().await;
}
