//! Leases: claim, heartbeat, complete, back off. Mechanism only.
//!
//! A unit is claimed in its own short transaction, worked on without one, and finished by the handler
//! in the transaction that writes its results. A holder that loses its lease is told by a cancelled
//! token and cannot write any more.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use rand::Rng;
use sqlx::postgres::PgListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    domain::{
        event::EventKind,
        fault::Fault,
        work::{Class, Lease},
    },
    store::{
        Store, StoreError, WORK_CHANNEL, events, jobs,
        leases::{self, Claim},
    },
    telemetry::{Meters, spans},
};

/// How long a unit that has lost its lease may take to end by itself.
const ENDING: Duration = Duration::from_secs(5);

/// Time after which a unit has reached its servers. An unreachable server fails earlier.
const REACHED: Duration = Duration::from_secs(30);

/// Does the work.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Does a unit and completes its lease in the transaction that writes the results. `cancelled`
    /// fires when the lease is lost.
    async fn run(&self, lease: &Lease, cancelled: &CancellationToken) -> Result<(), Fault>;
}

/// How a runner behaves.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Units at once, of each class.
    pub slots: Slots,
    /// How long a claim lasts unless it is renewed; renewed at a third of it.
    pub ttl: Duration,
    /// Longest pause between two looks at the queue.
    pub poll: Duration,
    /// How long a shutdown waits for running units.
    pub grace: Duration,
    /// First and longest pause between two attempts to reach an unreachable server.
    pub waits: (Duration, Duration),
}

/// Units at once, of each class.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// That keep an engine busy.
    pub engine: usize,
    /// That keep an environment busy, and the engine that acts in it.
    pub environment: usize,
    /// That keep a trainer busy.
    pub trainer: usize,
    /// That keep nothing else busy.
    pub light: usize,
}

impl Slots {
    const fn of(self, class: Class) -> usize {
        match class {
            Class::Engine => self.engine,
            Class::Environment => self.environment,
            Class::Trainer => self.trainer,
            Class::Light => self.light,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slots: Slots { engine: 8, environment: 8, trainer: 4, light: 2 },
            ttl: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(5),
            waits: (Duration::from_secs(1), Duration::from_secs(15)),
        }
    }
}

/// Claims work and has it done.
pub struct Runner {
    store: Store,
    handler: Arc<dyn Handler>,
    owner: String,
    settings: Settings,
    meters: Meters,
}

impl Runner {
    /// A runner that signs its claims as `owner` and counts its units on `meters`.
    #[must_use]
    pub fn new(
        store: Store,
        handler: Arc<dyn Handler>,
        owner: String,
        settings: Settings,
        meters: Meters,
    ) -> Self {
        Self { store, handler, owner, settings, meters }
    }

    /// Runs until `shutdown`, then waits for running units, and returns those that do not finish.
    ///
    /// # Errors
    /// A database that cannot be listened to at the start.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StoreError> {
        let runner = Arc::new(self);
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let serving = Class::ALL.iter().map(|&class| {
            let (runner, tasks, stop) = (runner.clone(), tasks.clone(), stop.clone());
            let shutdown = shutdown.clone();
            async move { runner.serve(class, &tasks, &stop, &shutdown).await }
        });
        try_join_all(serving).await?;
        tasks.close();
        if tokio::time::timeout(runner.settings.grace, tasks.wait()).await.is_err() {
            stop.cancel();
            // Each task gives its lease back; a database that is away lets the leases lapse instead.
            let _ = tokio::time::timeout(runner.settings.grace, tasks.wait()).await;
        }
        Ok(())
    }

    /// Claims units of one class until `shutdown`.
    async fn serve(
        self: &Arc<Self>,
        class: Class,
        tasks: &TaskTracker,
        stop: &CancellationToken,
        shutdown: &CancellationToken,
    ) -> Result<(), StoreError> {
        let slots = Arc::new(Semaphore::new(self.settings.slots.of(class)));
        // Listening before looking: what is announced in between is not missed.
        let mut listener = PgListener::connect_with(self.store.pool()).await?;
        listener.listen(WORK_CHANNEL).await?;
        while !shutdown.is_cancelled() {
            let slot = tokio::select! {
                slot = slots.clone().acquire_owned() => slot,
                () = shutdown.cancelled() => break,
            };
            let Ok(slot) = slot else { break };
            match self.claim(class).await {
                Ok(Claim::Taken(lease, _)) => {
                    let (runner, stop) = (self.clone(), stop.clone());
                    tasks.spawn(async move { runner.work(lease, slot, stop).await });
                    continue;
                }
                Ok(Claim::Nothing) => drop(slot),
                Err(error) => {
                    drop(slot);
                    tracing::warn!(%error, "cannot read the queue");
                }
            }
            let pause = self.settings.poll.mul_f64(rand::rng().random_range(0.8..1.2));
            tokio::select! {
                // A listener that broke off wakes at the next poll and reconnects by itself.
                _ = listener.recv() => {}
                () = tokio::time::sleep(pause) => {}
                () = shutdown.cancelled() => break,
            }
        }
        Ok(())
    }

    async fn claim(&self, class: Class) -> Result<Claim, StoreError> {
        let mut tx = self.store.begin().await?;
        let claim = leases::claim(&mut tx, class, &self.owner, self.settings.ttl).await?;
        if let Claim::Taken(lease, true) = &claim {
            let message = format!(
                "recovered a unit of {} after a worker stopped responding (attempt {})",
                lease.unit.phase, lease.attempt
            );
            let data = serde_json::json!({ "work_item": lease.item_id, "attempt": lease.attempt });
            events::append(&mut tx, lease.job_id, EventKind::Reclaimed, &message, data).await?;
        }
        tx.commit().await?;
        Ok(claim)
    }

    async fn work(&self, lease: Lease, _slot: OwnedSemaphorePermit, stop: CancellationToken) {
        let cancelled = CancellationToken::new();
        let started = tokio::time::Instant::now();
        let span = spans::unit(&lease);
        let outcome = {
            let handler = self.handler.clone();
            let (mine, token) = (lease.clone(), cancelled.clone());
            // Its own task, so that a panic is an outcome too.
            let run = async move { handler.run(&mine, &token).await };
            let mut running = tokio::spawn(run.instrument(span.clone()));
            let abort = running.abort_handle();
            tokio::select! {
                outcome = &mut running => outcome.unwrap_or_else(|panic| {
                    Err(Fault::Retry(format!("the worker panicked: {panic}")))
                }),
                () = self.keep(&lease, &cancelled) => {
                    // A unit that has just been completed holds no lease either: its end is on its way.
                    let ended = tokio::time::timeout(ENDING, &mut running).await;
                    abort.abort();
                    if matches!(ended, Ok(Ok(Ok(())))) { Ok(()) } else { Err(Fault::Cancelled) }
                }
                () = stop.cancelled() => {
                    abort.abort();
                    spans::unit_ended(&span, "given_back");
                    self.log(self.give_back(&lease).await, &lease);
                    return;
                }
            }
        };
        let phase = lease.unit.phase.as_str();
        let result = match &outcome {
            Ok(()) => "done",
            Err(Fault::Retry(_)) => "retry",
            Err(Fault::Away { .. }) => "waiting",
            Err(Fault::Fail(_) | Fault::Refused(_) | Fault::TooLong(_)) => "failed",
            Err(Fault::Cancelled) => "lost",
        };
        spans::unit_ended(&span, result);
        let ended = &[("phase", phase), ("outcome", result)];
        self.meters.counter("nlac_work_units_total", ended).increment(1);
        self.meters
            .histogram("nlac_work_unit_seconds", &[("phase", phase)])
            .record(started.elapsed().as_secs_f64());
        if let Err(fault) = outcome {
            self.log(self.settle(&lease, &fault).await, &lease);
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, lease: &Lease, cancelled: &CancellationToken) {
        let begun = tokio::time::Instant::now();
        let mut last = begun;
        loop {
            tokio::time::sleep(self.settings.ttl / 3).await;
            let under_way = begun.elapsed() > REACHED;
            let beat = async {
                let mut conn = self.store.acquire().await?;
                leases::heartbeat(&mut conn, lease, self.settings.ttl, under_way).await
            };
            // A database that takes the question and never answers is as far away as one that takes none.
            match tokio::time::timeout_at(last + self.settings.ttl, beat).await {
                Ok(Ok(leases::Beat::Held)) => last = tokio::time::Instant::now(),
                Ok(Err(error)) if last.elapsed() < self.settings.ttl => {
                    tracing::warn!(%error, "a heartbeat failed");
                }
                Ok(Ok(leases::Beat::Lost) | Err(_)) | Err(_) => break,
            }
        }
        cancelled.cancel();
    }

    async fn settle(&self, lease: &Lease, fault: &Fault) -> Result<(), StoreError> {
        let mut tx = self.store.begin().await?;
        let phase = lease.unit.phase;
        match fault {
            Fault::Cancelled => return Ok(()),
            Fault::Away { peer, reason } => {
                // The job before its unit, as everybody locks them.
                let news = jobs::set_waiting(&mut tx, lease.job_id, peer, reason).await?;
                leases::wait(&mut tx, lease, peer, reason, self.settings.waits).await?;
                if news {
                    let message = format!("the job waits for {peer}: {reason}");
                    let data = serde_json::json!({ "peer": peer, "phase": phase });
                    events::append(&mut tx, lease.job_id, EventKind::Waiting, &message, data)
                        .await?;
                }
            }
            Fault::Retry(reason) if lease.attempt < lease.max_attempts => {
                let exponent = u32::try_from(lease.attempt - 1).unwrap_or(0).min(6);
                let seconds = f64::from(1_u32 << exponent) * rand::rng().random_range(0.5..1.5);
                let delay = Duration::from_secs_f64(seconds);
                leases::retry(&mut tx, lease, reason, delay).await?;
                let message = format!("a {phase} unit failed and will be retried: {reason}");
                let data =
                    serde_json::json!({ "work_item": lease.item_id, "attempt": lease.attempt });
                events::append(&mut tx, lease.job_id, EventKind::Retried, &message, data).await?;
            }
            Fault::Retry(reason)
            | Fault::Fail(reason)
            | Fault::Refused(reason)
            | Fault::TooLong(reason) => {
                leases::fail(&mut tx, lease, reason).await?;
            }
        }
        tx.commit().await?;
        Ok(())
    }

    async fn give_back(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut tx = self.store.begin().await?;
        leases::release(&mut tx, lease).await?;
        tx.commit().await?;
        Ok(())
    }

    fn log(&self, outcome: Result<(), StoreError>, lease: &Lease) {
        if let Err(error) = outcome {
            tracing::warn!(%error, work.id = %lease.item_id, "cannot record the outcome of a unit");
        }
    }
}
