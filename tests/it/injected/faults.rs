//! The faults. Each comes while a job runs, and is over when its function returns.

use std::time::Duration;

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use nix::{
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{Signal, kill},
    },
    unistd::Pid,
};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};
use uuid::Uuid;

use super::{
    bench::{Ballast, Bench},
    clock::Clock,
    memory::Starved,
};
use crate::{
    environments::desk,
    support::{
        apart::run,
        faulty::Fate,
        http, kept,
        openenv::{Fake, Options},
    },
};

/// What came of a fault.
pub enum Came {
    /// It was injected, and is over.
    Over,
    /// It could not be injected here, and why.
    Skipped(&'static str),
}

/// Injects a fault into a job that runs, and ends it.
pub type Inject = for<'a> fn(&'a mut Bench, Uuid) -> BoxFuture<'a, Came>;

/// All faults.
pub const FAULTS: &[(&str, Inject)] = &[
    ("service killed", |b, _| service_killed(b).boxed()),
    ("service out of memory", |b, _| service_starved(b).boxed()),
    ("engine killed", |b, _| engine_killed(b).boxed()),
    ("trainer killed", |b, job| trainer_killed(b, job).boxed()),
    ("Postgres killed", |b, _| postgres_killed(b).boxed()),
    ("a process of Postgres killed", |b, _| backend_killed(b).boxed()),
    ("engine answers late", |b, _| engine(b, |_| Fate::Late(Duration::from_millis(400))).boxed()),
    ("engine is asked twice", |b, _| engine(b, |_| Fate::Twice).boxed()),
    ("engine answers break off", |b, _| engine(b, |n| every(4, n, Fate::Cut)).boxed()),
    ("engine takes and never answers", |b, _| engine_hangs(b).boxed()),
    ("engine answers by another model", |b, job| other_model(b, job).boxed()),
    ("trainer answers late", |b, job| {
        trainer(b, job, |_, _| Fate::Late(Duration::from_millis(400))).boxed()
    }),
    ("trainer is asked twice", |b, job| trainer(b, job, twice).boxed()),
    ("trainer answers break off", |b, job| trainer(b, job, |_, n| every(4, n, Fate::Cut)).boxed()),
    ("clock of the service an hour ahead", |b, _| service_clock(b, "+3600").boxed()),
    ("clock of the service an hour back", |b, _| service_clock(b, "-3600").boxed()),
    ("clock of Postgres an hour ahead", |b, _| postgres_clock(b, "+3600").boxed()),
    ("clock of Postgres an hour back", |b, _| postgres_clock(b, "-3600").boxed()),
    ("disk of the service full", |b, job| service_full(b, job).boxed()),
    ("disk of the service read-only", |b, job| service_read_only(b, job).boxed()),
    ("disk of Postgres full", |b, job| postgres_full(b, job).boxed()),
    ("connections to the service", |b, _| service_stormed(b).boxed()),
    ("connections to Postgres", |b, _| postgres_stormed(b).boxed()),
];

/// Each `count`-th request.
fn every(count: u32, number: u32, fate: Fate) -> Fate {
    if number.is_multiple_of(count) { fate } else { Fate::Pass }
}

/// Each request is made twice. A state that is saved twice ends an attempt, so that happens now and then only.
pub fn twice(path: &str, number: u32) -> Fate {
    match path.rsplit('/').next() {
        Some("save_weights" | "save_weights_for_sampler") => every(3, number, Fate::Twice),
        _ => Fate::Twice,
    }
}

async fn service_killed(bench: &mut Bench) -> Came {
    bench.server.kill();
    bench.serve(&[]).await;
    Came::Over
}

async fn service_starved(bench: &mut Bench) -> Came {
    let Ok(group) = Starved::put(bench.server.id()) else {
        return Came::Skipped("no control groups");
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while bench.server.runs() {
        assert!(Instant::now() < deadline, "it lives without memory");
        sleep(Duration::from_millis(10)).await;
    }
    drop(group);
    bench.serve(&[]).await;
    Came::Over
}

async fn engine_killed(bench: &mut Bench) -> Came {
    bench.engine.away();
    bench.engine.back().await;
    Came::Over
}

async fn trainer_killed(bench: &mut Bench, job: Uuid) -> Came {
    bench.within(job, "learn").await;
    bench.trainer.away();
    bench.trainer.back().await;
    Came::Over
}

pub async fn postgres_killed(bench: &mut Bench) -> Came {
    bench.database.kill();
    bench.database.back().await;
    Came::Over
}

/// As the kernel does to one that takes too much memory. Postgres then ends all connections.
async fn backend_killed(bench: &mut Bench) -> Came {
    let mut conn = PgConnection::connect(&bench.database.url()).await.unwrap();
    let other: i32 = sqlx::query_scalar(
        "select pid from pg_stat_activity
         where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 1",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    kill(Pid::from_raw(other), Signal::SIGKILL).unwrap();
    sleep(Duration::from_millis(200)).await;
    bench.database.back().await;
    Came::Over
}

/// For five seconds.
async fn engine(bench: &mut Bench, fate: fn(u32) -> Fate) -> Came {
    bench.at_engine.set(move |path, number| match path {
        "/v1/completions" => fate(number),
        _ => Fate::Pass,
    });
    sleep(Duration::from_secs(5)).await;
    bench.at_engine.clear();
    Came::Over
}

/// Requests of half a second are never answered: what was asked then is asked again after five minutes.
async fn engine_hangs(bench: &mut Bench) -> Came {
    bench.at_engine.set(|path, _| match path {
        "/v1/completions" => Fate::Hang,
        _ => Fate::Pass,
    });
    sleep(Duration::from_millis(500)).await;
    bench.at_engine.clear();
    Came::Over
}

/// The job fails, and goes on when the engine is the right one again.
async fn other_model(bench: &mut Bench, job: Uuid) -> Came {
    bench.at_engine.set(|path, _| match path {
        "/v1/completions" => Fate::Rewrite(|answer| answer["model"] = "another".into()),
        _ => Fate::Pass,
    });
    assert_eq!(kept::over(&bench.store, job, Duration::from_secs(120)).await, "failed");
    bench.at_engine.clear();
    bench.resume_if_failed(job).await;
    Came::Over
}

/// While a step is taken, for three seconds.
async fn trainer(bench: &mut Bench, job: Uuid, fate: fn(&str, u32) -> Fate) -> Came {
    bench.at_trainer.set(fate);
    bench.within(job, "learn").await;
    sleep(Duration::from_secs(3)).await;
    bench.at_trainer.clear();
    Came::Over
}

async fn service_clock(bench: &mut Bench, offset: &str) -> Came {
    let Some(clock) = Clock::make(bench.place.path().join("clock")) else {
        return Came::Skipped("no libfaketime");
    };
    bench.server.signal(Signal::SIGTERM);
    bench.server.ended();
    bench.serve(&clock.variables()).await;
    sleep(Duration::from_secs(1)).await;
    clock.jump(offset);
    sleep(Duration::from_secs(5)).await;
    clock.jump("+0");
    Came::Over
}

async fn postgres_clock(bench: &mut Bench, offset: &str) -> Came {
    let Some(clock) = Clock::make(bench.place.path().join("clock")) else {
        return Came::Skipped("no libfaketime");
    };
    bench.database.restart(&clock.variables()).await;
    sleep(Duration::from_secs(1)).await;
    clock.jump(offset);
    sleep(Duration::from_secs(5)).await;
    clock.jump("+0");
    bench.database.restart(&[]).await;
    Came::Over
}

fn has_disks(bench: &Bench) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    mounts.contains(bench.data().to_str().unwrap())
}

async fn service_full(bench: &mut Bench, job: Uuid) -> Came {
    if !has_disks(bench) {
        return Came::Skipped("no mounts");
    }
    let ballast = Ballast::fill(&bench.data());
    bench.within(job, "learn").await;
    sleep(Duration::from_secs(5)).await;
    drop(ballast);
    Came::Over
}

async fn service_read_only(bench: &mut Bench, job: Uuid) -> Came {
    if !has_disks(bench) {
        return Came::Skipped("no mounts");
    }
    let data = bench.data();
    let data = data.to_str().unwrap();
    run("mount", &["-o", "remount,ro", data]);
    bench.within(job, "learn").await;
    sleep(Duration::from_secs(5)).await;
    run("mount", &["-o", "remount,rw", data]);
    Came::Over
}

/// Postgres may end for want of space for its log; then it is started again.
async fn postgres_full(bench: &mut Bench, job: Uuid) -> Came {
    if !has_disks(bench) {
        return Came::Skipped("no mounts");
    }
    let ballast = Ballast::fill(&bench.place.path().join("postgres"));
    sleep(Duration::from_secs(5)).await;
    drop(ballast);
    bench.database.back().await;
    bench.resume_if_failed(job).await;
    Came::Over
}

/// Two thousand open connections, and two hundred requests at a time.
pub async fn service_stormed(bench: &mut Bench) -> Came {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let url = &bench.server.url;
    let address = url.strip_prefix("http://").unwrap();
    let idle = join_all((0..2000).map(|_| TcpStream::connect(address))).await;
    assert!(idle.iter().all(Result::is_ok));
    let until = Instant::now() + Duration::from_secs(5);
    let client = http();
    let asking = (0..200).map(|_| async {
        let mut answers = 0;
        while Instant::now() < until {
            let answer = client.get(format!("{url}/v1/jobs")).send().await;
            answers += u32::from(answer.is_ok_and(|answer| answer.status().is_success()));
        }
        answers
    });
    let answers: u32 = join_all(asking).await.into_iter().sum();
    assert!(answers > 0, "nobody is answered");
    Came::Over
}

/// All connections that Postgres gives are taken, for five seconds.
async fn postgres_stormed(bench: &mut Bench) -> Came {
    let url = bench.database.url();
    let mut taken = Vec::new();
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        match PgConnection::connect(&url).await {
            Ok(conn) => taken.push(conn),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
    assert!(taken.len() > 50, "{} connections", taken.len());
    for conn in taken {
        let _ = conn.close().await;
    }
    Came::Over
}

/// The environment of a job dies with all its episodes, and comes back.
pub async fn environment_killed(bench: &mut Bench) -> Option<Duration> {
    let splits = vec![("train".to_owned(), 40), ("held_out".to_owned(), 12)];
    let options = Options { splits: Some(splits), sessions: 6, ..Options::default() };
    let fake = Fake::start(desk, options.clone());
    let body = json!({ "kind": "openenv", "url": fake.url, "sessions": 6, "replayable": true });
    bench.server.ask(reqwest::Method::PUT, "/v1/environments/desk", &body).await;
    bench.environment = json!({ "kind": "remote", "name": "desk" });
    bench.measure().await;
    let job = bench.submit().await;
    kept::reaches(&bench.store, job, 1).await;
    bench.within(job, "collect").await;
    let address = fake.address;
    fake.stop().await;
    sleep(Duration::from_secs(1)).await;
    let fake = Fake::start_at(address, desk, options);
    let first = bench.first_rollout(job).await;
    bench.same(job).await;
    fake.stop().await;
    first
}
