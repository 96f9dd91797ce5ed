//! What a failed unit of work asks of the queue.

/// Decides between another attempt, waiting, giving up and standing down.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// May succeed later: a timeout, a refused connection, an engine that restarts.
    #[error("{0}")]
    Retry(String),
    /// An engine or a trainer cannot be reached, or serves nobody now. The work waits for it, however long that
    /// takes, and no attempt is spent.
    #[error("{reason}")]
    Away {
        /// Which: its kind and its registered name.
        peer: String,
        /// What the last try said.
        reason: String,
    },
    /// Will not succeed by repetition: a wrong spec, a missing model, a broken invariant.
    #[error("{0}")]
    Fail(String),
    /// Will not be answered, whoever is asked. What else there is to do may go on without it.
    #[error("{0}")]
    Refused(String),
    /// Will not be answered, because the prompt, or what may be written after it, does not fit in the engine's context.
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

    /// A peer that cannot be reached; keeps the error's message.
    pub fn away(kind: &str, name: &str, error: impl std::fmt::Display) -> Self {
        Self::Away { peer: format!("{kind} {name}"), reason: error.to_string() }
    }

    /// A permanent fault from any error; keeps its message.
    pub fn fail(error: impl std::fmt::Display) -> Self {
        Self::Fail(error.to_string())
    }
}
