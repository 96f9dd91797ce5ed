//! A request that an engine rejects (for example a prompt beyond its context) costs one transition and not the
//! batch.

use futures_util::future::try_join_all;

use super::{Annotations, Replayed};
use crate::domain::fault::Fault;

/// Asks for all at once. A refusal is told in its place; any other fault is one of all.
pub(super) async fn all_but_refused<T>(
    asked: impl IntoIterator<Item = impl Future<Output = Result<T, Fault>>>,
) -> Result<Vec<Result<T, String>>, Fault> {
    try_join_all(asked.into_iter().map(|one| async {
        match one.await {
            Err(Fault::Refused(reason) | Fault::TooLong(reason)) => Ok(Err(reason)),
            said => said.map(Ok),
        }
    }))
    .await
}

impl Annotations {
    /// What was said of a transition; a refusal leaves it out.
    pub(super) fn heard<T>(&mut self, replayed: &Replayed, said: Result<T, String>) -> Option<T> {
        said.map_err(|reason| self.left_out.entry(replayed.transition.id).or_insert(reason)).ok()
    }

    /// If every transition is rejected, the cause is not in the transitions.
    pub(super) fn unless_all_are_left_out(self, batch: &[Replayed]) -> Result<Self, Fault> {
        let all = batch.iter().all(|r| self.left_out.contains_key(&r.transition.id));
        match self.left_out.values().next() {
            Some(reason) if all => Err(Fault::Refused(reason.clone())),
            _ => Ok(self),
        }
    }
}
