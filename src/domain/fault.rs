//! Faults of a unit of work, and what the queue does about them.

/// Decides between retry, wait, failure and stop.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Temporary: a timeout, a failed connection, a restarting engine.
    #[error("{0}")]
    Retry(String),
    /// An engine, a trainer or the database is unreachable or unavailable. The work waits for it without a time limit and
    /// uses no attempt.
    #[error("{reason}")]
    Away {
        /// Kind and registered name.
        peer: String,
        /// Error of the last attempt.
        reason: String,
    },
    /// Permanent: a wrong spec, a missing model, a broken invariant.
    #[error("{0}")]
    Fail(String),
    /// Every engine would reject the request. Other work may continue without it.
    #[error("{0}")]
    Refused(String),
    /// Rejected because the prompt, or the longest possible answer, does not fit the engine's context.
    #[error("{0}")]
    TooLong(String),
    /// The lease was lost or the job was cancelled: stop without writing.
    #[error("the lease was lost or the job was cancelled")]
    Cancelled,
}

impl Fault {
    /// A retryable fault from any error; keeps its message.
    pub fn retry(error: impl std::fmt::Display) -> Self {
        Self::Retry(error.to_string())
    }

    /// An unreachable engine or trainer. Keeps the error's message.
    pub fn away(kind: &str, name: &str, error: impl std::fmt::Display) -> Self {
        Self::Away { peer: format!("{kind} {name}"), reason: error.to_string() }
    }

    /// A permanent fault from any error; keeps its message.
    pub fn fail(error: impl std::fmt::Display) -> Self {
        Self::Fail(error.to_string())
    }
}
