//! Limits that hold for all processes together: of the places that a server has, each process uses a share.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// Places that a process uses, and how many it could use now: those, and what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// In use.
    pub held: usize,
    /// In use or waited for.
    pub wanted: usize,
}

/// The places of a server, of which this process has a share.
pub trait Places: Send + Sync {
    /// What is used and wanted. From now on nothing new is taken until a share is set.
    fn freeze(&self) -> Demand;

    /// From now on so many may be used. What is in use beyond that ends in its time, and is not taken again.
    fn set_share(&self, share: usize);

    /// Whom to tell when something has to wait.
    fn tell(&self, hurry: Arc<Notify>);
}

/// All places of this process.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

struct Inner {
    /// Whether other processes use the same servers.
    joint: bool,
    entries: Mutex<Vec<Entry>>,
    hurry: Arc<Notify>,
}

struct Entry {
    resource: String,
    capacity: usize,
    places: Weak<dyn Places>,
    share: usize,
}

/// What this process asks for of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Kind and URL.
    pub resource: String,
    /// Places that all processes have together.
    pub capacity: usize,
    /// What it uses and wants.
    pub demand: Demand,
}

impl Shares {
    /// Of a process that is alone: it may use everything.
    #[must_use]
    pub fn alone() -> Self {
        Self::new(false)
    }

    /// Of a process beside others: it may use nothing until its share is set.
    #[must_use]
    pub fn joint() -> Self {
        Self::new(true)
    }

    fn new(joint: bool) -> Self {
        Self(Arc::new(Inner { joint, entries: Mutex::default(), hurry: Arc::default() }))
    }

    /// Adds the places of a resource.
    pub fn add(&self, resource: String, capacity: usize, places: &Arc<impl Places + 'static>) {
        if !self.0.joint {
            return places.set_share(capacity);
        }
        places.freeze();
        places.tell(self.0.hurry.clone());
        let weak = Arc::downgrade(places);
        self.entries().push(Entry { resource, capacity, places: weak, share: 0 });
    }

    /// Resolves when something had to wait since the last call.
    pub async fn wanted(&self) {
        self.0.hurry.notified().await;
    }

    /// Whether this process has a share of anything.
    #[must_use]
    pub fn any(&self) -> bool {
        self.entries().iter().any(|entry| entry.share > 0)
    }

    /// What to ask for. Nothing new is taken until [`Shares::set`].
    #[must_use]
    pub fn freeze(&self) -> Vec<Asked> {
        let mut asked = BTreeMap::<String, (Asked, usize)>::new();
        let mut entries = self.entries();
        entries.retain(|entry| entry.places.strong_count() > 0);
        for entry in entries.iter() {
            let Some(places) = entry.places.upgrade() else { continue };
            let Demand { held, wanted } = places.freeze();
            // The same server may be registered anew while work still uses the earlier registration.
            let (sum, share) = asked.entry(entry.resource.clone()).or_insert_with(|| {
                let (resource, capacity) = (entry.resource.clone(), entry.capacity);
                (Asked { resource, capacity, demand: Demand::default() }, 0)
            });
            sum.capacity = entry.capacity;
            sum.demand.held += held;
            sum.demand.wanted += wanted;
            *share += entry.share;
        }
        let asked = asked.into_values().filter(|(sum, share)| *share > 0 || sum.demand.wanted > 0);
        asked.map(|(sum, _)| sum).collect()
    }

    /// Sets the shares of what was asked for.
    pub fn set(&self, shares: &HashMap<String, usize>) {
        let mut entries = self.entries();
        entries.retain(|entry| entry.places.strong_count() > 0);
        let mut registrations = BTreeMap::<_, Vec<_>>::new();
        for entry in entries.iter_mut() {
            let Some(places) = entry.places.upgrade() else { continue };
            registrations.entry(entry.resource.clone()).or_default().push((entry, places));
        }
        for (resource, mut registered) in registrations {
            let demands: Vec<_> = registered.iter().map(|(_, places)| places.freeze()).collect();
            let all = shares.get(&resource).copied().unwrap_or(0);
            for ((entry, places), share) in registered.iter_mut().zip(split(all, &demands)) {
                entry.share = share;
                places.set_share(share);
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits the share of one server between its registrations, oldest first: one server may be registered twice, or anew
/// while work still uses the earlier registration. Each keeps what it uses, then each gets one place in turn while it
/// wants more, and the newest gets what is left.
fn split(all: usize, demands: &[Demand]) -> Vec<usize> {
    let mut left = all;
    let mut give = |want: usize| {
        let given = want.min(left);
        left -= given;
        given
    };
    let mut shares: Vec<_> = demands.iter().map(|demand| give(demand.held)).collect();
    loop {
        let mut any = false;
        for (share, demand) in shares.iter_mut().zip(demands) {
            let given = give(usize::from(*share < demand.wanted));
            *share += given;
            any |= given > 0;
        }
        if !any {
            break;
        }
    }
    if let Some(newest) = shares.last_mut() {
        *newest += give(usize::MAX);
    }
    shares
}

/// Places that are taken in the order of arrival.
pub struct Seats {
    /// Those that are free.
    free: Arc<Semaphore>,
    count: Mutex<Count>,
    waiting: AtomicUsize,
    hurry: OnceLock<Arc<Notify>>,
}

struct Count {
    share: usize,
    /// Free and in use; more than the share while what is in use exceeds it.
    all: usize,
}

/// A place, given back when it is dropped.
pub struct Seat {
    permit: Option<OwnedSemaphorePermit>,
    seats: Arc<Seats>,
}

impl Seats {
    /// So many places, until [`Shares::add`].
    #[must_use]
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(capacity)),
            count: Mutex::new(Count { share: capacity, all: capacity }),
            waiting: AtomicUsize::new(0),
            hurry: OnceLock::new(),
        })
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// None: the places are never closed.
    pub async fn take(self: &Arc<Self>) -> Result<Seat, AcquireError> {
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _waits = Waits::of(&self.waiting);
                if let Some(hurry) = self.hurry.get() {
                    hurry.notify_one();
                }
                self.free.clone().acquire_owned().await?
            }
        };
        Ok(Seat { permit: Some(permit), seats: self.clone() })
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut count = self.seats.count();
        if count.all > count.share {
            count.all -= 1;
            permit.forget();
        }
    }
}

impl Places for Seats {
    fn freeze(&self) -> Demand {
        let mut count = self.count();
        count.share = 0;
        count.all -= self.free.forget_permits(count.all);
        Demand { held: count.all, wanted: count.all + self.waiting.load(Relaxed) }
    }

    fn set_share(&self, share: usize) {
        let mut count = self.count();
        let surplus = count.all.saturating_sub(share);
        count.all -= self.free.forget_permits(surplus);
        self.free.add_permits(share.saturating_sub(count.all));
        *count = Count { share, all: count.all.max(share) };
    }

    fn tell(&self, hurry: Arc<Notify>) {
        let _ = self.hurry.set(hurry);
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc, time::Duration};

    use super::{AcquireError, Demand, Seat, Seats, Shares, split};

    const A: &str = "environment a";

    fn set(shares: &Shares, share: usize) {
        shares.set(&HashMap::from([(A.to_owned(), share)]));
    }

    /// A place, if there is one now.
    async fn now(seats: &Arc<Seats>) -> Option<Seat> {
        tokio::time::timeout(Duration::from_millis(20), seats.take()).await.ok()?.ok()
    }

    #[tokio::test]
    async fn a_share_grows_and_shrinks_around_what_is_in_use() -> Result<(), AcquireError> {
        let (shares, seats) = (Shares::joint(), Seats::new(4));
        shares.add(A.into(), 4, &seats);
        assert!(!shares.any() && now(&seats).await.is_none(), "nothing before it is granted");
        shares.wanted().await;
        assert!(shares.freeze().is_empty(), "it was given up");
        let waiting = {
            let seats = seats.clone();
            tokio::spawn(async move { seats.take().await })
        };
        shares.wanted().await;
        let asked = shares.freeze();
        assert_eq!((asked.len(), asked[0].capacity), (1, 4));
        assert_eq!(asked[0].demand, Demand { held: 0, wanted: 1 });
        set(&shares, 3);
        let Ok(first) = waiting.await else { unreachable!("no panic") };
        let (first, second) = (first?, seats.take().await?);
        assert_eq!(shares.freeze()[0].demand, Demand { held: 2, wanted: 2 });
        assert!(now(&seats).await.is_none(), "frozen");
        // Two are in use, one too many.
        set(&shares, 1);
        drop(first);
        assert!(now(&seats).await.is_none(), "what was too much is not taken again");
        drop(second);
        let third = seats.take().await?;
        assert!(now(&seats).await.is_none());
        set(&shares, 2);
        assert!(now(&seats).await.is_some());
        drop(third);
        Ok(())
    }

    #[test]
    fn two_registrations_of_a_server_share_it_as_they_need() {
        let demand = |held, wanted| Demand { held, wanted };
        assert_eq!(split(8, &[demand(0, 0), demand(0, 0)]), [0, 8], "the newest keeps the rest");
        assert_eq!(split(8, &[demand(0, 3), demand(0, 0)]), [3, 5]);
        assert_eq!(split(8, &[demand(1, 20), demand(5, 20)]), [2, 6], "what is used stays");
        assert_eq!(split(8, &[demand(0, 20), demand(0, 20)]), [4, 4]);
        assert_eq!(split(2, &[demand(3, 9), demand(1, 1)]), [2, 0]);
        assert_eq!(split(8, &[]), [0; 0]);
    }

    #[tokio::test]
    async fn a_new_registration_gets_what_the_old_one_does_not_use() -> Result<(), AcquireError> {
        let (shares, old, new) = (Shares::joint(), Seats::new(4), Seats::new(6));
        shares.add(A.into(), 4, &old);
        set(&shares, 4);
        let held = old.take().await?;
        shares.add(A.into(), 6, &new);
        let asked = shares.freeze();
        assert_eq!((asked.len(), asked[0].capacity, asked[0].demand.held), (1, 6, 1));
        set(&shares, 5);
        assert!(now(&old).await.is_none());
        let mut seats = Vec::new();
        while let Some(seat) = now(&new).await {
            seats.push(seat);
        }
        assert_eq!(seats.len(), 4);
        drop((held, old));
        assert_eq!(shares.freeze()[0].demand.held, 4);

        let alone = Seats::new(2);
        Shares::alone().add(A.into(), 2, &alone);
        let both = (alone.take().await?, alone.take().await?);
        assert!(now(&alone).await.is_none());
        drop(both);
        assert!(now(&alone).await.is_some());
        Ok(())
    }
}
