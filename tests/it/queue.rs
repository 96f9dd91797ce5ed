//! Leases: one holder at a time, fenced when lost, every unit completed exactly once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use nlac::{
    domain::{
        clock::{Clock, SystemClock},
        fault::Fault,
        ids::{IterationId, JobId, WorkItemId},
        job::{Job, JobStatus, Phase},
        work::{Lease, Payload},
    },
    queue::{Handler, Runner, Settings},
    store::{Store, StoreError, iterations, jobs, work_items},
    telemetry::Meters,
};
use tokio_util::sync::CancellationToken;

use crate::support::{database, small_job};

const TTL: Duration = Duration::from_millis(600);

async fn planned(store: &Store, units: u32) -> (JobId, IterationId) {
    let job = Job {
        id: JobId::new(),
        spec: serde_json::from_value(small_job()).unwrap(),
        owner: "local".into(),
        status: JobStatus::Queued,
        error: None,
        created_at: SystemClock.now(),
        started_at: None,
        finished_at: None,
    };
    let mut tx = store.begin().await.unwrap();
    jobs::insert(&mut tx, &job, &serde_json::json!({})).await.unwrap();
    let from = [JobStatus::Queued];
    jobs::move_status(&mut tx, job.id, &from, JobStatus::Running, None).await.unwrap();
    let iteration = IterationId::new();
    iterations::insert(&mut tx, iteration, job.id, 0, Phase::Annotate, -1).await.unwrap();
    let payloads: Vec<_> =
        (0..units).map(|chunk| Payload::Annotate { version: 0, chunk, chunks: units }).collect();
    work_items::plan(&mut tx, job.id, iteration, &payloads).await.unwrap();
    // Planning twice plans once.
    work_items::plan(&mut tx, job.id, iteration, &payloads).await.unwrap();
    tx.commit().await.unwrap();
    (job.id, iteration)
}

#[tokio::test]
async fn a_lost_lease_cannot_write_any_more() {
    let (store, postgres, _place) = database().await;
    planned(&store, 1).await;
    let mut conn = store.acquire().await.unwrap();
    let (first, reclaimed) = work_items::claim(&mut conn, "a", TTL).await.unwrap().unwrap();
    assert!(!reclaimed);
    assert!(work_items::claim(&mut conn, "b", TTL).await.unwrap().is_none(), "it is leased");
    for _ in 0..3 {
        tokio::time::sleep(TTL / 2).await;
        let beat = work_items::heartbeat(&mut conn, &first, TTL).await.unwrap();
        assert_eq!(beat, work_items::Beat::Held);
    }
    assert!(work_items::claim(&mut conn, "b", TTL).await.unwrap().is_none(), "it was renewed");
    tokio::time::sleep(TTL + Duration::from_millis(200)).await;
    let (second, reclaimed) = work_items::claim(&mut conn, "b", TTL).await.unwrap().unwrap();
    assert!(reclaimed);
    assert_eq!(second.attempt, 2);
    let beat = work_items::heartbeat(&mut conn, &first, TTL).await.unwrap();
    assert_eq!(beat, work_items::Beat::Lost);
    for refused in [
        work_items::hold(&mut conn, &first).await,
        work_items::complete(&mut conn, &first).await,
        work_items::retry(&mut conn, &first, "late", Duration::ZERO).await,
    ] {
        assert!(matches!(refused, Err(StoreError::LeaseLost)));
    }
    work_items::hold(&mut conn, &second).await.unwrap();
    work_items::complete(&mut conn, &second).await.unwrap();
    let outcomes: Vec<String> =
        sqlx::query_scalar("select outcome from work_attempts order by attempt")
            .fetch_all(&mut *conn)
            .await
            .unwrap();
    assert_eq!(outcomes, ["lost", "done"]);
    drop(conn);
    store.close().await;
    postgres.stop().await.unwrap();
}

const HEARTBEAT: Duration = Duration::from_secs(2);

/// Completes each unit, but fails or panics on the first attempts at some, and lingers over others.
struct Flaky {
    store: Store,
    completed: Mutex<HashMap<WorkItemId, u32>>,
}

#[async_trait]
impl Handler for Flaky {
    async fn run(&self, lease: &Lease, _: &CancellationToken) -> Result<(), Fault> {
        let Payload::Annotate { chunk, .. } = lease.payload else { unreachable!() };
        match (chunk % 4, lease.attempt) {
            (1, 1) => return Err(Fault::Retry("scripted".into())),
            (2, 1) => panic!("scripted"),
            _ => {}
        }
        let mut tx = self.store.begin().await.map_err(Fault::from)?;
        work_items::hold(&mut tx, lease).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(Fault::retry)?;
        if chunk % 4 == 3 {
            // A heartbeat finds no lease any more before this has returned.
            tokio::time::sleep(HEARTBEAT + Duration::from_millis(300)).await;
        }
        *self.completed.lock().unwrap().entry(lease.item_id).or_default() += 1;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runners_complete_every_unit_once_whatever_fails() {
    let (store, postgres, _place) = database().await;
    let (_, iteration) = planned(&store, 40).await;
    let handler = Arc::new(Flaky { store: store.clone(), completed: Mutex::default() });
    let shutdown = CancellationToken::new();
    let settings = Settings { ttl: HEARTBEAT * 3, ..Settings::default() };
    let runners: Vec<_> = ["a", "b"]
        .map(|owner| {
            let meters = Meters::default();
            let runner =
                Runner::new(store.clone(), handler.clone(), owner.into(), settings, meters);
            tokio::spawn(runner.run(shutdown.clone()))
        })
        .into_iter()
        .collect();
    for _ in 0..200 {
        let mut conn = store.acquire().await.unwrap();
        let tally = work_items::tally(&mut conn, iteration, Phase::Annotate).await.unwrap();
        if tally.open == 0 {
            assert_eq!((tally.done, tally.failed), (40, 0));
            break;
        }
        drop(conn);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    shutdown.cancel();
    for runner in runners {
        runner.await.unwrap().unwrap();
    }
    let completed = handler.completed.lock().unwrap().clone();
    assert_eq!(completed.len(), 40);
    assert!(completed.values().all(|n| *n == 1));
    store.close().await;
    postgres.stop().await.unwrap();
}
