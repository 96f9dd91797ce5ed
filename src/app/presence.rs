//! Says now and then that this process runs.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    domain::{ids::ProcessId, process::Process},
    store::{Store, StoreError, processes},
};

/// Pause between two heartbeats. Others take a process for gone after 30 seconds of silence.
const EVERY: Duration = Duration::from_secs(5);

/// Says so until `shutdown`.
pub(super) async fn keep(
    store: Store,
    process: Process,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    loop {
        if let Err(error) = beat(&store, &process).await {
            tracing::warn!(%error, "a heartbeat of this process failed");
        }
        if shutdown.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_none() {
            return Ok(());
        }
    }
}

/// Says that it has stopped. A database that is away takes it for gone after a while.
pub(super) async fn leave(store: &Store, process: ProcessId) {
    let leaving = async { processes::leave(&mut *store.acquire().await?, process).await };
    if let Err(error) = leaving.await {
        tracing::warn!(%error, "cannot note that this process stops");
    }
}

/// Says so once.
pub(super) async fn beat(store: &Store, process: &Process) -> Result<(), StoreError> {
    processes::beat(&mut *store.acquire().await?, process).await
}
