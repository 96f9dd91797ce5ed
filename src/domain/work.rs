//! Units of work: what a lease is held on. Payloads live here, runners in `work`.

use serde::{Deserialize, Serialize};
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
        /// A trainer.
        Trainer = "trainer",
        /// Nothing but this process and the database.
        Light = "light",
    }
);

/// What is to be done. The phase of the iteration it belongs to is [`Payload::phase`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Payload {
    /// Play episodes `first .. first + count` of the iteration with the online adapter.
    Collect {
        /// The version that acts.
        version: i32,
        /// Ordinal of the first episode.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Link episodes `first .. first + count` of a dataset to the job.
    Link {
        /// The dataset.
        dataset: String,
        /// Episodes of the datasets before it.
        offset: u32,
        /// Place of the first episode in the dataset.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Annotate slice `chunk` of `chunks` of the iteration's replay batch.
    Annotate {
        /// The version whose online and target adapters annotate.
        version: i32,
        /// Which slice, from 0.
        chunk: u32,
        /// Of how many.
        chunks: u32,
    },
    /// Take the iteration's optimizer steps and save the result.
    Learn {
        /// The version to go on from; -1 before the first.
        version: i32,
    },
    /// Make the saved adapter and its target available on the engine.
    Publish,
    /// Play held-out episodes `first .. first + count` at a sampling temperature.
    Evaluate {
        /// Sampling temperature; 0 is greedy.
        temperature: f32,
        /// Ordinal of the first episode.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Measure the critic's health and read the guards.
    Assess,
}

impl Payload {
    /// What it keeps busy.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Learn { .. } => Class::Trainer,
            Self::Link { .. } => Class::Light,
            Self::Collect { .. }
            | Self::Annotate { .. }
            | Self::Publish
            | Self::Evaluate { .. }
            | Self::Assess => Class::Engine,
        }
    }

    /// The phase in which such work is planned.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Collect { .. } | Self::Link { .. } => Phase::Collect,
            Self::Annotate { .. } => Phase::Annotate,
            Self::Learn { .. } => Phase::Learn,
            Self::Publish => Phase::Publish,
            Self::Evaluate { .. } => Phase::Evaluate,
            Self::Assess => Phase::Assess,
        }
    }
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
    pub payload: Payload,
    /// Proof of the claim; every write checks it.
    pub token: LeaseToken,
    /// Which attempt this is, from 1.
    pub attempt: i32,
    /// How many there may be.
    pub max_attempts: i32,
    /// When the claim lapses unless it is renewed (database clock).
    pub expires_at: OffsetDateTime,
}
