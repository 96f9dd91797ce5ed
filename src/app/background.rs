//! The background tasks of each role.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::heartbeat;
use crate::{
    domain::{
        clock::Clock,
        process::{
            Process,
            ProcessRole::{self, Api, Scheduler, Worker as Working},
        },
        retention::Retention,
        service_key::ServiceKey,
    },
    fleet::{self, Peers},
    net::Destinations,
    queue::{Runner, Settings},
    retention::{Expiry, clear_incoming, end_idle, prune_rows, remove_deleted},
    scheduler,
    sharing::Shares,
    store::{Announcements, Store, StoreError},
    supervision::Supervisor,
    telemetry::Meters,
    webhooks,
    work::Worker,
};

/// What background tasks need.
pub(super) struct Background {
    pub process: Process,
    pub store: Store,
    pub peers: Arc<Peers>,
    pub shares: Shares,
    pub worker: Arc<Worker>,
    pub events: Announcements,
    pub service_key: ServiceKey,
    pub destinations: Destinations,
    pub retention: Retention,
    pub clock: Arc<dyn Clock>,
    pub meters: Meters,
    pub shutdown: CancellationToken,
}

/// Makes a task.
type Make = fn(&Background) -> BoxFuture<'static, Result<(), StoreError>>;

/// Each task, with the roles that run it.
const TASKS: &[(&str, &[ProcessRole], Make)] = &[
    ("heartbeat", ProcessRole::ALL, |b| {
        heartbeat::run(b.store.clone(), b.process.clone(), b.shutdown.clone()).boxed()
    }),
    ("shares", ProcessRole::ALL, |b| {
        fleet::share(b.store.clone(), b.shares.clone(), b.process.id, b.shutdown.clone()).boxed()
    }),
    ("events", &[Api, Scheduler], |b| {
        b.events.clone().relay(b.store.clone(), b.shutdown.clone()).boxed()
    }),
    ("planner", &[Scheduler], |b| scheduler::run(b.store.clone(), b.shutdown.clone()).boxed()),
    ("retention", &[Scheduler], |b| {
        prune_rows(b.store.clone(), b.retention, b.shutdown.clone()).boxed()
    }),
    ("deletion", &[Scheduler], |b| {
        remove_deleted(b.store.clone(), b.retention.pace.deleted, b.shutdown.clone()).boxed()
    }),
    ("idle_episodes", &[Scheduler], |b| end_idle(b.store.clone(), b.shutdown.clone()).boxed()),
    ("versions", &[Scheduler], |b| {
        Expiry::new(b.store.clone(), b.peers.clone(), b.retention).run(b.shutdown.clone()).boxed()
    }),
    // Each process has a directory of its own if adapters lie in a bucket.
    ("incoming", ProcessRole::ALL, |b| {
        clear_incoming(b.peers.clone(), b.retention.pace.rows, b.shutdown.clone()).boxed()
    }),
    ("fleet", &[Scheduler], |b| {
        fleet::watch(b.store.clone(), b.peers.clone(), b.shutdown.clone()).boxed()
    }),
    ("webhooks", &[Scheduler], |b| {
        webhooks::deliver(
            b.store.clone(),
            b.events.clone(),
            b.service_key.clone(),
            b.destinations.clone(),
            b.clock.clone(),
            b.shutdown.clone(),
        )
        .boxed()
    }),
    ("workers", &[Working], |b| {
        let (store, owner) = (b.store.clone(), b.process.id.to_string());
        let (meters, clock) = (b.meters.clone(), b.clock.clone());
        Runner::new(store, b.worker.clone(), owner, Settings::default(), meters, clock)
            .run(b.shutdown.clone())
            .boxed()
    }),
];

impl Background {
    /// Starts the tasks of the process's roles.
    pub fn start(self, supervisor: &Supervisor) {
        let background = Arc::new(self);
        for (name, roles, make) in TASKS {
            if background.process.is_any(roles) {
                let background = background.clone();
                supervisor.run(name, move || make(&background));
            }
        }
    }
}
