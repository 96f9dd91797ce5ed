//! Keeps this process's shares in the places of engines and environments: asks for what it needs, and gives back what
//! others need more.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::ids::ProcessId,
    sharing::{Asked, Shares},
    store::{
        Store, StoreError,
        shares::{self, SHARES_CHANNEL, Share, Wish},
    },
};

/// Shortest pause between two questions.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause before a process asks again that has fewer places than it wants.
const HUNGRY: Duration = Duration::from_millis(250);
/// Pause before a share is renewed, which lasts for 30 seconds.
const RENEWED: Duration = Duration::from_secs(5);
/// Deadline of a question. Nothing new begins meanwhile.
const DEADLINE: Duration = Duration::from_secs(5);

/// Keeps the shares until `shutdown`.
///
/// # Errors
/// A database that cannot be listened to at the start.
pub async fn share(
    store: Store,
    shares: Shares,
    process: ProcessId,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(store.pool()).await?;
    listener.listen(SHARES_CHANNEL).await?;
    let own = process.to_string();
    while !shutdown.is_cancelled() {
        let asked = shares.freeze();
        let hungry = match ask(&store, process, &asked).await {
            Ok(granted) => {
                let hungry = granted.iter().any(|share| share.hungry);
                let of = |share: Share| (share.resource, usize::try_from(share.share).unwrap_or(0));
                shares.set(&granted.into_iter().map(of).collect());
                hungry
            }
            // Others may have been granted what this process had: nothing new begins until the database answers.
            Err(error) => {
                tracing::warn!(%error, "cannot renew the shares of this process");
                true
            }
        };
        tokio::time::sleep(PAUSE).await;
        let heard = async {
            loop {
                match listener.recv().await {
                    Ok(notice) if notice.payload() == own => {}
                    // Who has no share has nothing to give back.
                    Ok(_) if !hungry && !shares.any() => {}
                    _ => return,
                }
            }
        };
        let renewal = async {
            if !hungry && !shares.any() {
                return std::future::pending().await;
            }
            tokio::time::sleep(if hungry { HUNGRY } else { RENEWED }).await;
        };
        tokio::select! {
            () = heard => {}
            () = renewal => {}
            () = shares.wanted(), if !hungry => {}
            () = shutdown.cancelled() => {}
        }
    }
    Ok(())
}

async fn ask(store: &Store, process: ProcessId, asked: &[Asked]) -> Result<Vec<Share>, StoreError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let wishes: Vec<Wish<'_>> = asked
        .iter()
        .map(|asked| Wish {
            resource: &asked.resource,
            capacity: number(asked.capacity),
            held: number(asked.demand.held),
            wanted: number(asked.demand.wanted.min(asked.capacity.max(asked.demand.held))),
        })
        .collect();
    let asking = async {
        let mut conn = store.acquire().await?;
        shares::take(&mut conn, process, &wishes).await
    };
    let late = |_| StoreError::from(sqlx::Error::PoolTimedOut);
    timeout(DEADLINE, asking).await.map_err(late)?
}
