//! Results that are not there yet: submitted, waited for, kept until asked for.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::sync::watch;

/// A result, or the text of a failure.
pub type Outcome = Result<Value, String>;

/// How many finished results are kept; the oldest go first.
const KEPT: u64 = 4096;

/// All futures of a server.
#[derive(Clone, Default)]
pub struct Futures {
    next: Arc<AtomicU64>,
    all: Arc<Mutex<HashMap<u64, watch::Sender<Option<Outcome>>>>>,
}

/// What a poll finds.
pub enum Poll {
    Ready(Outcome),
    /// Not within the time given.
    Pending,
    Unknown,
}

impl Futures {
    /// A new future.
    pub fn open(&self) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut all = self.lock();
        all.insert(id, watch::channel(None).0);
        if let Some(oldest) = id.checked_sub(KEPT) {
            all.remove(&oldest);
        }
        id
    }

    /// Resolves a future.
    pub fn resolve(&self, id: u64, outcome: Outcome) {
        if let Some(sender) = self.lock().get(&id) {
            sender.send_replace(Some(outcome));
        }
    }

    /// Waits for a future.
    pub async fn poll(&self, id: u64, patience: Duration) -> Poll {
        let Some(mut receiver) = self.lock().get(&id).map(watch::Sender::subscribe) else {
            return Poll::Unknown;
        };
        let ready = tokio::time::timeout(patience, receiver.wait_for(Option::is_some)).await;
        match ready {
            Ok(Ok(outcome)) => outcome.clone().map_or(Poll::Pending, Poll::Ready),
            Ok(Err(_)) => Poll::Unknown,
            Err(_) => Poll::Pending,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, watch::Sender<Option<Outcome>>>> {
        self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
