//! Rate limits. Each process counts for itself.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter, clock::Clock};

use crate::domain::ids::KeyId;

/// Wrong keys that are answered per minute. Keys cannot be guessed; the limit keeps the audit log readable.
const FAILURES: u32 = 20;

/// Recent requests.
pub(super) struct Limits {
    failures: DefaultDirectRateLimiter,
    keys: Mutex<HashMap<KeyId, Arc<DefaultDirectRateLimiter>>>,
}

impl Limits {
    pub fn new() -> Self {
        Self { failures: a_minute(FAILURES), keys: Mutex::default() }
    }

    /// Counts a wrong key. Returns how long to wait after too many.
    pub fn failed(&self) -> Result<(), Duration> {
        count(&self.failures)
    }

    /// Counts a request of a key. Returns how long to wait after too many.
    pub fn used(&self, key: KeyId, most: i32) -> Result<(), Duration> {
        let most = u32::try_from(most).unwrap_or(1);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter = keys.entry(key).or_insert_with(|| Arc::new(a_minute(most))).clone();
        drop(keys);
        count(&limiter)
    }
}

fn a_minute(most: u32) -> DefaultDirectRateLimiter {
    RateLimiter::direct(Quota::per_minute(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)))
}

fn count(limiter: &DefaultDirectRateLimiter) -> Result<(), Duration> {
    limiter.check().map_err(|until| until.wait_time_from(limiter.clock().now()))
}

#[cfg(test)]
mod tests {
    use super::{FAILURES, KeyId, Limits};

    #[test]
    fn each_key_has_its_own_minute() {
        let (limits, one, other) = (Limits::new(), KeyId::new(), KeyId::new());
        assert!(limits.used(one, 2).is_ok() && limits.used(one, 2).is_ok());
        assert!(limits.used(one, 2).is_err_and(|wait| wait.as_secs() < 60));
        assert!(limits.used(other, 2).is_ok());
        assert!((0..FAILURES).all(|_| limits.failed().is_ok()));
        assert!(limits.failed().is_err());
    }
}
