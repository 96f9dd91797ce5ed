//! What an engine refuses to say of one transition (a prompt beyond its context, say) costs that
//! transition and not the batch.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use super::{Annotations, Replayed};
use crate::domain::{fault::Fault, ids::TransitionId};

/// A transition of which something could not be said.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// Which.
    pub transition_id: TransitionId,
    /// What the engine said to it.
    pub reason: String,
}

/// Asks for all at once. A refusal is told in its place; any other fault is one of all.
pub(super) async fn all_but_refused<T>(
    asked: impl IntoIterator<Item = impl Future<Output = Result<T, Fault>>>,
) -> Result<Vec<Result<T, String>>, Fault> {
    try_join_all(asked.into_iter().map(|one| async {
        match one.await {
            Err(Fault::Refused(reason)) => Ok(Err(reason)),
            said => said.map(Ok),
        }
    }))
    .await
}

impl Annotations {
    pub(super) fn leave_out(&mut self, replayed: &Replayed, reason: String) {
        self.left_out.push(LeftOut { transition_id: replayed.transition.id, reason });
    }

    /// What is refused of every transition is not the transitions' fault.
    pub(super) fn of_some(self, batch: &[Replayed]) -> Result<Self, Fault> {
        let all: BTreeSet<_> = batch.iter().map(|r| r.transition.id).collect();
        let out: BTreeSet<_> = self.left_out.iter().map(|left| left.transition_id).collect();
        match self.left_out.first() {
            Some(first) if out == all => Err(Fault::Refused(first.reason.clone())),
            _ => Ok(self),
        }
    }
}
