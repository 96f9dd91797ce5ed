//! A channel of announcements, heard by a connection of its own.

use std::time::Duration;

use sqlx::postgres::PgListener;

use super::{Store, StoreError};

/// Pause after a failure. A database that rejects connections at once would keep a processor busy.
const PAUSE: Duration = Duration::from_secs(1);

/// Hears what is announced on a channel, and reconnects by itself.
pub struct Listener {
    listener: PgListener,
    channel: &'static str,
    is_deaf: bool,
}

impl Listener {
    /// Listens to a channel.
    ///
    /// # Errors
    /// A database that cannot be listened to at the start.
    pub async fn on(store: &Store, channel: &'static str) -> Result<Self, StoreError> {
        let mut listener = PgListener::connect_with(store.pool()).await?;
        listener.listen(channel).await?;
        Ok(Self { listener, channel, is_deaf: false })
    }

    /// The payload of the next announcement; none after a failure and a pause, because something may have been announced
    /// meanwhile.
    pub async fn heard(&mut self) -> Option<String> {
        match self.listener.recv().await {
            Ok(notice) => {
                self.is_deaf = false;
                Some(notice.payload().to_owned())
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_deaf, true) {
                    let channel = self.channel;
                    tracing::warn!(channel, %error, "cannot hear announcements of the database; trying again");
                }
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }
}
