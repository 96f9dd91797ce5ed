//! Room for requests on a replica, shared fairly: a slot that comes free goes to the waiting job that holds
//! fewest, so that a job with thousands of requests does not keep another from its first, and there to its oldest
//! iteration, so that an overlapping one does not keep the trainer waiting.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{domain::ids::JobId, engine::Origin};

/// Who holds and who waits; requests of no job are one job.
type Owner = Option<JobId>;

/// The slots of a replica, one for each text that it writes at a time.
pub(super) struct Slots {
    capacity: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    held: HashMap<Owner, usize>,
    waiting: HashMap<Owner, BTreeMap<Place, Waiting>>,
    /// Of requests that had to wait, so that between equals the one that waits longest is next.
    arrivals: u64,
    /// Fewest slots that were free since somebody began to watch.
    least_free: usize,
}

/// In a job's queue: the iteration, and when it came.
type Place = (i32, u64);

struct Waiting {
    count: usize,
    turn: oneshot::Sender<Held>,
}

/// Slots of one request, given back when it is dropped.
pub(super) struct Held {
    /// None once they were handed on.
    slots: Option<Arc<Slots>>,
    owner: Owner,
    count: usize,
}

impl Slots {
    pub fn new(capacity: usize) -> Arc<Self> {
        let state = State {
            free: capacity,
            held: HashMap::new(),
            waiting: HashMap::new(),
            arrivals: 0,
            least_free: capacity,
        };
        Arc::new(Self { capacity, state: Mutex::new(state) })
    }

    /// From now on [`Slots::most`] counts.
    pub fn watch(&self) {
        let mut state = self.lock();
        state.least_free = state.free;
    }

    /// Most slots that were held at a time since [`Slots::watch`].
    pub fn most(&self) -> usize {
        self.capacity - self.lock().least_free
    }

    /// Waits until so many slots are free, or all of them where there are fewer.
    pub async fn take(self: &Arc<Self>, origin: Option<Origin>, count: usize) -> Held {
        let (owner, iteration) = (origin.map(|o| o.job), origin.map_or(0, |o| o.iteration));
        let count = count.min(self.capacity);
        loop {
            let waits = {
                let mut state = self.lock();
                // Who asks for little does not pass one who waits for much.
                if state.waiting.is_empty() && state.free >= count {
                    state.hold(owner, count);
                    return Held { slots: Some(self.clone()), owner, count };
                }
                let (turn, waits) = oneshot::channel();
                let place = (iteration, state.arrivals);
                state.arrivals += 1;
                state.waiting.entry(owner).or_default().insert(place, Waiting { count, turn });
                waits
            };
            // A sender is dropped only by slots that were handed to nobody: then they are free.
            if let Ok(held) = waits.await {
                return held;
            }
        }
    }

    /// Hands slots on, past requests that were given up.
    fn give_back(self: Arc<Self>, owner: Owner, count: usize) {
        let mut state = self.lock();
        state.release(owner, count);
        while let Some((owner, Waiting { count, turn, .. })) = state.next() {
            state.hold(owner, count);
            let held = Held { slots: Some(self.clone()), owner, count };
            if let Err(mut refused) = turn.send(held) {
                refused.slots = None;
                state.release(owner, count);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, owner: Owner, count: usize) {
        self.free -= count;
        *self.held.entry(owner).or_default() += count;
        self.least_free = self.least_free.min(self.free);
    }

    fn release(&mut self, owner: Owner, count: usize) {
        self.free += count;
        if let Some(held) = self.held.get_mut(&owner) {
            *held -= count;
            if *held == 0 {
                self.held.remove(&owner);
            }
        }
    }

    /// Takes the first request of the job that holds fewest slots, if there is room for it.
    fn next(&mut self) -> Option<(Owner, Waiting)> {
        let held = |owner: &Owner| self.held.get(owner).copied().unwrap_or(0);
        let first = |queue: &BTreeMap<Place, Waiting>| {
            queue.first_key_value().map_or(u64::MAX, |((_, arrival), _)| *arrival)
        };
        let owner =
            *self.waiting.iter().min_by_key(|(owner, queue)| (held(owner), first(queue)))?.0;
        let queue = self.waiting.get_mut(&owner)?;
        let next = queue.first_entry().filter(|w| w.get().count <= self.free)?.remove();
        if queue.is_empty() {
            self.waiting.remove(&owner);
        }
        Some((owner, next))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.give_back(self.owner, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{JobId, Origin, Slots};

    fn some_job(iteration: i32) -> Option<Origin> {
        Some(Origin { job: JobId::new(), iteration })
    }

    #[tokio::test]
    async fn who_holds_fewest_is_next() {
        let slots = Slots::new(4);
        let (greedy, modest) = (some_job(1), some_job(1));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(slots.take(greedy, 1).await);
        }
        let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
        let wait = |origin: Option<Origin>| {
            let (slots, order) = (slots.clone(), order.clone());
            tokio::spawn(async move {
                let slot = slots.take(origin, 1).await;
                assert!(order.send((origin.map(|o| o.job), slot)).is_ok());
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
                came.push(owner == modest.map(|o| o.job));
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
        assert_eq!(slots.lock().free, 4);
    }

    #[tokio::test]
    async fn the_older_iteration_of_a_job_is_next() {
        let slots = Slots::new(1);
        let job = JobId::new();
        let mut slot = slots.take(None, 1).await;
        let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
        for iteration in [5, 4, 5, 3] {
            let (slots, order) = (slots.clone(), order.clone());
            tokio::spawn(async move {
                let slot = slots.take(Some(Origin { job, iteration }), 1).await;
                assert!(order.send((iteration, slot)).is_ok());
            });
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut came = Vec::new();
        for _ in 0..4 {
            drop(slot);
            let Some(next) = served.recv().await else { unreachable!("each is served") };
            came.push(next.0);
            slot = next.1;
        }
        assert_eq!(came, [3, 4, 5, 5]);
    }

    #[tokio::test]
    async fn given_up_requests_cost_no_slot() {
        let slots = Slots::new(1);
        let slot = slots.take(None, 1).await;
        let impatient: Vec<_> = (0..5_000)
            .map(|_| {
                let slots = slots.clone();
                tokio::spawn(async move { slots.take(None, 1).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        impatient.iter().for_each(tokio::task::JoinHandle::abort);
        for task in impatient {
            assert!(task.await.is_err());
        }
        drop(slot);
        assert_eq!(slots.lock().free, 1);
        drop(slots.take(None, 1).await);
        assert_eq!(slots.lock().free, 1);
    }

    #[tokio::test]
    async fn one_who_waits_for_many_is_not_passed_for_ever() -> Result<(), tokio::task::JoinError> {
        let slots = Slots::new(4);
        let (modest, greedy) = (some_job(1), some_job(1));
        slots.watch();
        let (one, other) = (slots.take(modest, 2).await, slots.take(modest, 2).await);
        let waits = |count| {
            let slots = slots.clone();
            tokio::spawn(async move { slots.take(greedy, count).await })
        };
        // More than there are: it gets them all, alone.
        let most = waits(9);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let little = waits(1);
        drop(one);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!most.is_finished() && !little.is_finished());
        drop(other);
        let all = most.await?;
        assert_eq!((all.count, slots.most()), (4, 4));
        drop(all);
        drop(little.await?);
        slots.watch();
        assert_eq!(slots.most(), 0);
        assert_eq!(slots.lock().free, 4);
        Ok(())
    }
}
