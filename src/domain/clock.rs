//! Business time. Lease times are the database's own; everything else asks a [`Clock`].

use time::OffsetDateTime;

/// Where the present comes from.
pub trait Clock: Send + Sync {
    /// The present instant, in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}
