//! One file per kind of work: load, compute, save in one transaction.

mod annotate;
mod assess;
mod collect;
mod context;
mod learn;
mod link;
mod publish;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::{
        clock::Clock,
        fault::Fault,
        work::{Lease, Payload},
    },
    fleet::Peers,
    queue::Handler,
    store::Store,
};

pub(crate) use self::{annotate::Slice, context::JobContext, publish::load_and_probe};

/// Does every kind of work.
pub struct Worker {
    store: Store,
    peers: Arc<Peers>,
    /// Published adapters lie here, one directory each; engines read them from here.
    adapters: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Worker {
    /// A worker over a store and its peers; adapters are published under `adapters`.
    #[must_use]
    pub fn new(store: Store, peers: Arc<Peers>, adapters: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { store, peers, adapters, clock }
    }
}

#[async_trait]
impl Handler for Worker {
    async fn run(&self, lease: &Lease, _cancelled: &CancellationToken) -> Result<(), Fault> {
        match lease.payload.clone() {
            Payload::Collect { version, first, count } => {
                self.collect(lease, version, first, count).await
            }
            Payload::Link { dataset, offset, first, count } => {
                self.link(lease, &dataset, (offset, first, count)).await
            }
            Payload::Annotate { version, chunk, chunks } => {
                self.annotate(lease, version, Slice { number: chunk, of: chunks }).await
            }
            Payload::Learn { version } => self.learn(lease, version).await,
            Payload::Publish => self.publish(lease).await,
            Payload::Evaluate { temperature, first, count } => {
                self.evaluate(lease, temperature, first, count).await
            }
            Payload::Assess => self.assess(lease).await,
        }
    }
}
