//! What a failed unit of work asks of the queue.

/// Decides between another attempt, giving up and standing down.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// May succeed later: a timeout, a refused connection, an engine that restarts.
    #[error("{0}")]
    Retry(String),
    /// Will not succeed by repetition: a wrong spec, a missing model, a broken invariant.
    #[error("{0}")]
    Fail(String),
    /// Will not be answered, whoever is asked: a prompt beyond the context, say. What else there is to do
    /// may go on without it.
    #[error("{0}")]
    Refused(String),
    /// The lease was lost or the job was cancelled: stop without writing.
    #[error("the lease was lost or the job was cancelled")]
    Cancelled,
}

impl Fault {
    /// A retryable fault from any error; keeps its message.
    pub fn retry(error: impl std::fmt::Display) -> Self {
        Self::Retry(error.to_string())
    }

    /// A permanent fault from any error; keeps its message.
    pub fn fail(error: impl std::fmt::Display) -> Self {
        Self::Fail(error.to_string())
    }
}
