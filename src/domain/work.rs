//! Units of work: what a lease is held on.

use time::OffsetDateTime;

use super::{
    ids::{IterationId, JobId, LeaseToken, WorkItemId},
    job::Phase,
    text_enum::text_enum,
};

text_enum!(
    /// Where a unit of work stands.
    WorkState {
        /// May be claimed once its time has come.
        Ready = "ready",
        /// Somebody holds a lease on it.
        Leased = "leased",
        /// Its results are written.
        Done = "done",
        /// It failed for good.
        Failed = "failed",
        /// Its job was cancelled.
        Cancelled = "cancelled",
    }
);

text_enum!(
    /// What a unit of work keeps busy. Each class has slots of its own, so that none starves another.
    Class {
        /// An engine.
        Engine = "engine",
        /// An environment, and the engine that acts in it.
        Environment = "environment",
        /// A trainer.
        Trainer = "trainer",
        /// Nothing but this process and the database.
        Light = "light",
    }
);

/// A unit of work that is to be done. What its kinds are, and how each is done, is known in `work`.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Its kind's name.
    pub kind: String,
    /// Whose slots it takes.
    pub class: Class,
    /// The phase in which it is planned.
    pub phase: Phase,
    /// What to do, as its kind reads it.
    pub payload: serde_json::Value,
}

/// A unit of work that this process has claimed.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The unit.
    pub item_id: WorkItemId,
    /// Its job.
    pub job_id: JobId,
    /// Its iteration.
    pub iteration_id: IterationId,
    /// What to do.
    pub unit: Unit,
    /// Proof of the claim; every write checks it.
    pub token: LeaseToken,
    /// Which attempt this is, from 1.
    pub attempt: i32,
    /// How many there may be.
    pub max_attempts: i32,
    /// When the claim lapses unless it is renewed (database clock).
    pub expires_at: OffsetDateTime,
}
