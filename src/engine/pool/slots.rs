//! Room for requests on a replica, shared fairly: a slot that comes free goes to the waiting job that holds
//! fewest, so that a job with thousands of requests does not keep another from its first.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::domain::ids::JobId;

/// Who holds and who waits; requests of no job are one job.
type Owner = Option<JobId>;

/// The slots of a replica.
pub(super) struct Slots(Mutex<State>);

struct State {
    free: usize,
    held: HashMap<Owner, usize>,
    waiting: HashMap<Owner, VecDeque<(u64, oneshot::Sender<Slot>)>>,
    /// Of requests that had to wait, so that between equals the one that waits longest is next.
    arrivals: u64,
}

/// One slot, given back when it is dropped.
pub(super) struct Slot {
    /// None once it was handed on.
    slots: Option<Arc<Slots>>,
    owner: Owner,
}

impl Slots {
    pub fn new(capacity: usize) -> Arc<Self> {
        let state =
            State { free: capacity, held: HashMap::new(), waiting: HashMap::new(), arrivals: 0 };
        Arc::new(Self(Mutex::new(state)))
    }

    /// Slots that are held.
    pub fn held(&self) -> usize {
        self.lock().held.values().sum()
    }

    /// Waits for a slot.
    pub async fn take(self: &Arc<Self>, owner: Owner) -> Slot {
        loop {
            let turn = {
                let mut state = self.lock();
                if state.free > 0 {
                    state.free -= 1;
                    *state.held.entry(owner).or_default() += 1;
                    return Slot { slots: Some(self.clone()), owner };
                }
                let (sender, turn) = oneshot::channel();
                let arrival = state.arrivals;
                state.arrivals += 1;
                state.waiting.entry(owner).or_default().push_back((arrival, sender));
                turn
            };
            // A sender is dropped only by a slot that was handed to nobody: then one is free.
            if let Ok(slot) = turn.await {
                return slot;
            }
        }
    }

    /// Hands a slot on, past requests that were given up.
    fn give_back(self: Arc<Self>, mut owner: Owner) {
        loop {
            let next = {
                let mut state = self.lock();
                if let Some(held) = state.held.get_mut(&owner) {
                    *held -= 1;
                    if *held == 0 {
                        state.held.remove(&owner);
                    }
                }
                let Some(next) = state.next() else {
                    state.free += 1;
                    return;
                };
                *state.held.entry(next.0).or_default() += 1;
                next
            };
            owner = next.0;
            match next.1.send(Slot { slots: Some(self.clone()), owner }) {
                Ok(()) => return,
                Err(mut refused) => refused.slots = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the first request of the job that holds fewest slots.
    fn next(&mut self) -> Option<(Owner, oneshot::Sender<Slot>)> {
        let held = |owner: &Owner| self.held.get(owner).copied().unwrap_or(0);
        let first =
            |queue: &VecDeque<(u64, _)>| queue.front().map_or(u64::MAX, |(arrival, _)| *arrival);
        let owner =
            *self.waiting.iter().min_by_key(|(owner, queue)| (held(owner), first(queue)))?.0;
        let queue = self.waiting.get_mut(&owner)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&owner);
        }
        next.map(|(_, sender)| (owner, sender))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.give_back(self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{JobId, Slots};

    #[tokio::test]
    async fn who_holds_fewest_is_next() {
        let slots = Slots::new(4);
        let (greedy, modest) = (Some(JobId::new()), Some(JobId::new()));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(slots.take(greedy).await);
        }
        let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
        let wait = |owner| {
            let (slots, order) = (slots.clone(), order.clone());
            tokio::spawn(async move {
                let slot = slots.take(owner).await;
                assert!(order.send((owner, slot)).is_ok());
            })
        };
        // A hundred of one job came first, then two of the other.
        let mut waiting: Vec<_> = (0..100).map(|_| wait(greedy)).collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        waiting.extend((0..2).map(|_| wait(modest)));
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut came = Vec::new();
        for _ in 0..4 {
            held.remove(0);
            if let Some((owner, slot)) = served.recv().await {
                came.push(owner == modest);
                held.push(slot);
            }
        }
        assert_eq!(came, [true, true, false, false]);
        drop(held);
        while served.try_recv().is_ok() {
            tokio::task::yield_now().await;
        }
        drop(order);
        while served.recv().await.is_some() {}
        assert_eq!((slots.held(), slots.lock().free), (0, 4));
    }

    #[tokio::test]
    async fn given_up_requests_cost_no_slot() {
        let slots = Slots::new(1);
        let slot = slots.take(None).await;
        let impatient: Vec<_> = (0..5_000)
            .map(|_| {
                let slots = slots.clone();
                tokio::spawn(async move { slots.take(None).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        impatient.iter().for_each(tokio::task::JoinHandle::abort);
        for task in impatient {
            assert!(task.await.is_err());
        }
        drop(slot);
        assert_eq!(slots.held(), 0);
        drop(slots.take(None).await);
        assert_eq!(slots.lock().free, 1);
    }
}
