//! Room for requests on a replica, shared fairly: a slot that comes free goes to the waiting job that holds
//! fewest, so that a job with thousands of requests does not keep another from its first, and there to its oldest
//! iteration, so that an overlapping one does not keep the trainer waiting.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::sync::{Notify, oneshot};

use crate::{
    domain::ids::JobId,
    engine::Origin,
    sharing::{Demand, Places},
};

/// Who holds and who waits; requests of no job are one job.
type Owner = Option<JobId>;

/// The slots of a replica, one for each text that it writes at a time. This process has a share of them.
pub(super) struct Slots {
    capacity: usize,
    state: Mutex<State>,
    hurry: OnceLock<Arc<Notify>>,
    /// Itself, for who is handed a slot.
    me: Weak<Self>,
}

struct State {
    /// Slots that this process may use.
    share: usize,
    in_use: usize,
    held: HashMap<Owner, usize>,
    waiting: HashMap<Owner, BTreeMap<Place, Waiting>>,
    /// Of requests that had to wait, so that between equals the one that waits longest is next.
    arrivals: u64,
    /// Most slots that were in use since somebody began to watch.
    most: usize,
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
            share: capacity,
            in_use: 0,
            held: HashMap::new(),
            waiting: HashMap::new(),
            arrivals: 0,
            most: 0,
        };
        Arc::new_cyclic(|me| Self {
            capacity,
            state: Mutex::new(state),
            hurry: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// From now on [`Slots::most`] counts.
    pub fn watch(&self) {
        let mut state = self.lock();
        state.most = state.in_use;
    }

    /// Most slots that were held at a time since [`Slots::watch`].
    pub fn most(&self) -> usize {
        self.lock().most
    }

    /// Waits until so many slots are free, or all that this process may use where those are fewer.
    pub async fn take(self: &Arc<Self>, origin: Option<Origin>, count: usize) -> Held {
        let (owner, iteration) = (origin.map(|o| o.job), origin.map_or(0, |o| o.iteration));
        let count = count.min(self.capacity);
        loop {
            let waits = {
                let mut state = self.lock();
                // Who asks for little does not pass one who waits for much.
                if state.waiting.is_empty()
                    && let Some(count) = state.room(count)
                {
                    state.hold(owner, count);
                    return Held { slots: Some(self.clone()), owner, count };
                }
                let (turn, waits) = oneshot::channel();
                let place = (iteration, state.arrivals);
                state.arrivals += 1;
                state.waiting.entry(owner).or_default().insert(place, Waiting { count, turn });
                waits
            };
            if let Some(hurry) = self.hurry.get() {
                hurry.notify_one();
            }
            // A sender is dropped only by slots that were handed to nobody: then they are free.
            if let Ok(held) = waits.await {
                return held;
            }
        }
    }

    fn give_back(&self, owner: Owner, count: usize) {
        let mut state = self.lock();
        state.release(owner, count);
        self.hand_on(&mut state);
    }

    /// Hands slots on, past requests that were given up.
    fn hand_on(&self, state: &mut State) {
        while let Some((owner, count, turn)) = state.next() {
            state.hold(owner, count);
            let held = Held { slots: self.me.upgrade(), owner, count };
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

impl Places for Slots {
    fn freeze(&self) -> Demand {
        let mut state = self.lock();
        state.share = 0;
        let mut waiting = 0;
        state.waiting.retain(|_, queue| {
            queue.retain(|_, request| !request.turn.is_closed());
            waiting += queue.values().map(|request| request.count).sum::<usize>();
            !queue.is_empty()
        });
        Demand { held: state.in_use, wanted: state.in_use + waiting }
    }

    fn set_share(&self, share: usize) {
        let mut state = self.lock();
        state.share = share;
        self.hand_on(&mut state);
    }

    fn tell(&self, hurry: Arc<Notify>) {
        let _ = self.hurry.set(hurry);
    }
}

impl State {
    /// How many slots a request for so many gets now; none while there is no room.
    fn room(&self, count: usize) -> Option<usize> {
        let count = count.min(self.share);
        (count > 0 && self.in_use + count <= self.share).then_some(count)
    }

    fn hold(&mut self, owner: Owner, count: usize) {
        self.in_use += count;
        *self.held.entry(owner).or_default() += count;
        self.most = self.most.max(self.in_use);
    }

    fn release(&mut self, owner: Owner, count: usize) {
        self.in_use -= count;
        if let Some(held) = self.held.get_mut(&owner) {
            *held -= count;
            if *held == 0 {
                self.held.remove(&owner);
            }
        }
    }

    /// Takes the first request of the job that holds fewest slots, if there is room for it, with the slots that it gets.
    fn next(&mut self) -> Option<(Owner, usize, oneshot::Sender<Held>)> {
        let held = |owner: &Owner| self.held.get(owner).copied().unwrap_or(0);
        let first = |queue: &BTreeMap<Place, Waiting>| {
            queue.first_key_value().map_or(u64::MAX, |((_, arrival), _)| *arrival)
        };
        let owner =
            *self.waiting.iter().min_by_key(|(owner, queue)| (held(owner), first(queue)))?.0;
        let queue = self.waiting.get(&owner)?;
        let first = queue.first_key_value()?.1.count;
        let count = self.room(first)?;
        let queue = self.waiting.get_mut(&owner)?;
        let (_, next) = queue.pop_first()?;
        if queue.is_empty() {
            self.waiting.remove(&owner);
        }
        Some((owner, count, next.turn))
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

    use super::{Demand, JobId, Origin, Places as _, Slots};

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
        assert_eq!(slots.lock().in_use, 0);
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
        assert_eq!(slots.lock().in_use, 0);
        drop(slots.take(None, 1).await);
        assert_eq!(slots.lock().in_use, 0);
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
        assert_eq!(slots.lock().in_use, 0);
        Ok(())
    }

    #[tokio::test]
    async fn a_share_bounds_what_is_taken_and_wakes_who_waits() {
        let slots = Slots::new(8);
        assert_eq!(slots.freeze(), Demand { held: 0, wanted: 0 });
        let waits = {
            let slots = slots.clone();
            tokio::spawn(async move { slots.take(some_job(1), 5).await })
        };
        while slots.freeze().wanted < 5 {
            tokio::task::yield_now().await;
        }
        slots.set_share(3);
        let Ok(held) = waits.await else { unreachable!("no panic") };
        assert_eq!(held.count, 3, "all that this process may use");
        assert_eq!(slots.freeze(), Demand { held: 3, wanted: 3 });
        drop(held);
        slots.set_share(8);
        assert_eq!(slots.take(None, 9).await.count, 8);
    }
}
