//! kill -9 at random moments: the job ends by itself, nothing is lost, nothing is doubled.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use nlac::{embedded::postgres::Postgres, store::Store};
use rand::Rng;

use crate::support::Place;

fn demo(place: &Place, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_nlac"))
        .args(["demo", "--exit", "--iterations", "3", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(place.path().join("data"))
        .args(more)
        .env_remove("DATABASE_URL")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(place.path().join("stderr")).unwrap())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_lose_and_double_nothing() {
    let place = Place::new();
    let mut rng = rand::rng();
    for kill in 0..5 {
        let mut child = demo(&place, if kill == 0 { &[] } else { &["--resume"] });
        tokio::time::sleep(Duration::from_millis(rng.random_range(1200..6000))).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let report = place.path().join("report.json");
    let mut child = demo(&place, &["--resume", "--report", report.to_str().unwrap()]);
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    let status = tokio::time::timeout(Duration::from_secs(900), ended).await.unwrap().unwrap();
    let said = std::fs::read_to_string(place.path().join("stderr")).unwrap();
    assert!(status.success(), "the last start ends by itself: {said}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();

    let postgres = Postgres::start(&place.path().join("data/postgres"), true).await.unwrap();
    assert!(!postgres.adopted(), "the demo stopped its Postgres");
    let store = Store::connect(postgres.options().clone()).await.unwrap();
    let mut conn = store.acquire().await.unwrap();
    let job: uuid::Uuid = report["job"].as_str().unwrap().parse().unwrap();
    let count = async |conn: &mut sqlx::PgConnection, sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).bind(job).fetch_one(conn).await.unwrap()
    };
    let ended = "select count(*) from jobs where id = $1 and status = 'succeeded'";
    assert_eq!(count(&mut conn, ended).await, 1);
    let open = "select count(*) from work_items where job_id = $1 and state <> 'done'";
    assert_eq!(count(&mut conn, open).await, 0);
    let collected = "select count(*) from rollouts where job_id = $1 and purpose = 'collect'";
    assert_eq!(count(&mut conn, collected).await, 3 * 64, "no episode lost or doubled");
    // Steps of an episode are numbered without gaps, and all are in replay.
    let gaps = "select count(*) from rollouts r join episodes e on e.id = r.episode_id
        where r.job_id = $1 and r.purpose = 'collect' and
        (select count(*) from transitions t where t.episode_id = e.id) <> e.turns";
    assert_eq!(count(&mut conn, gaps).await, 0);
    let outside =
        "select count(*) from rollouts o join transitions t on t.episode_id = o.episode_id
        left join replay r on r.transition_id = t.id and r.job_id = o.job_id
        where o.job_id = $1 and r.transition_id is null";
    assert_eq!(count(&mut conn, outside).await, 0);
    // The optimizer took the steps that the examples ask for: 4 passes in minibatches of 32.
    let asked = "select sum(4 * ((n + 31) / 32))::int8 from
        (select count(*) as n from training_examples where job_id = $1 group by iteration_id) x";
    let asked = count(&mut conn, asked).await;
    let applied = "select count(*) from train_steps where job_id = $1 and state = 'applied'";
    assert_eq!(count(&mut conn, applied).await, asked);
    assert_eq!(
        count(&mut conn, "select max(step)::int8 from train_steps where job_id = $1").await,
        asked
    );
    // The trainer's own counter in the state that the last checkpoint names agrees.
    let state: String = sqlx::query_scalar(
        "select trainer_state from checkpoints where job_id = $1 and role = 'online'
         order by version desc limit 1",
    )
    .bind(job)
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    let path = place.path().join("data/trainer").join(state.strip_prefix("tinker://").unwrap());
    let saved = std::fs::read_to_string(path.join("state.json")).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["steps"].as_i64().unwrap(), asked);
    drop(conn);
    store.close().await;
    postgres.stop().await.unwrap();
}
