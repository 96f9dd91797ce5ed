//! A job learns from a dataset: the dataset's transitions are linked to it, not copied.

use super::Worker;
use crate::{
    domain::{fault::Fault, work::Lease},
    store::{StoreError, iterations, replay, search, work_items},
};

/// Linked episodes are numbered from here on, past those that any iteration collects.
const FIRST: i32 = 1_000_000;

impl Worker {
    /// Links `count` episodes of a dataset, from the `first`-th on. Datasets before it have `offset` episodes.
    pub(super) async fn link(
        &self,
        lease: &Lease,
        dataset: &str,
        (offset, first, count): (u32, u32, u32),
    ) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        let gone = || Fault::Fail("the iteration is gone".into());
        let iteration = iterations::get(&mut tx, lease.iteration_id).await?.ok_or_else(gone)?;
        let job = (lease.job_id, iteration.index);
        let place = FIRST + (offset + first).cast_signed();
        let new = replay::link_dataset(&mut tx, job, dataset, (first, count), place).await?;
        search::refresh(&mut tx, lease.job_id, &new).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }
}
