//! New events, heard by one connection for everybody who waits for them.

use sqlx::postgres::PgListener;
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

use super::{EVENT_CHANNEL, Store, StoreError};
use crate::domain::ids::JobId;

/// Tells which job has a new event. A missed announcement is harmless: waiting clients also poll the rows.
#[derive(Debug, Clone)]
pub struct Announcements(Sender<JobId>);

impl Default for Announcements {
    fn default() -> Self {
        Self(channel(256).0)
    }
}

impl Announcements {
    /// Hears what is announced from here on.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<JobId> {
        self.0.subscribe()
    }

    /// Passes on what Postgres announces, until `shutdown`.
    ///
    /// # Errors
    /// A database that cannot be listened to at the start; later it reconnects.
    pub async fn relay(self, store: Store, shutdown: CancellationToken) -> Result<(), StoreError> {
        let mut listener = PgListener::connect_with(store.pool()).await?;
        listener.listen(EVENT_CHANNEL).await?;
        while let Some(heard) = shutdown.run_until_cancelled(listener.recv()).await {
            match heard {
                // Nobody may be waiting.
                Ok(notice) => drop(notice.payload().parse().map(|job| self.0.send(job))),
                Err(error) => {
                    tracing::warn!(%error, "events are not announced until the database is available again");
                    let pause = std::time::Duration::from_secs(1);
                    shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
                }
            }
        }
        Ok(())
    }
}
