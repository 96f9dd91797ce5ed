//! Work on adapters' files, which may have gigabytes: on threads that may block.

use crate::{domain::fault::Fault, trainer::adapter::AdapterError};

/// Reads or writes adapters' files. What is wrong with them stays wrong: the fault ends the work.
pub(super) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdapterError> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(Fault::fail)?.map_err(Fault::fail)
}
