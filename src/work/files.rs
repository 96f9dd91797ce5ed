//! Work on adapters' files. They may have gigabytes, so it runs on threads that may block.

use crate::{
    domain::fault::Fault,
    trainer::{adapter::AdapterError, adapter_fault},
};

/// Reads or writes adapters' files.
pub(super) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdapterError> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(Fault::fail)?.map_err(|e| adapter_fault(&e))
}
