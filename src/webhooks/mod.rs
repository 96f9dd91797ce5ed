//! Delivers events to webhooks at least once. Each delivery is signed as standardwebhooks.com says, and failed
//! deliveries are repeated for a day.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::json;
use time::format_description::well_known::Rfc3339;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::{clock::Clock, service_key::ServiceKey},
    net::{Client, Destinations, NetError},
    store::{
        Announcements, Store, StoreError,
        webhooks::{self, Due},
    },
};

/// How long a receiver has to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How much of an answer is read. None of it is kept.
const MOST_BYTES: usize = 64 << 10;
/// Deliveries at a time.
const MOST: usize = 16;
/// Pause between two looks for failed deliveries to repeat.
const EVERY: Duration = Duration::from_secs(5);
/// Pause after each failure, in seconds: a day in all. A delivery that fails after the last pause is given up.
const PAUSES: [u64; 8] = [5, 30, 120, 600, 1800, 7200, 28_800, 43_200];

/// Delivers events until `shutdown`.
///
/// # Errors
/// None: a round that fails at the database is logged, and the next one tries again.
pub async fn deliver(
    store: Store,
    events: Announcements,
    key: ServiceKey,
    destinations: Destinations,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    let mut announced = events.subscribe();
    loop {
        match shutdown.run_until_cancelled(round(&store, &key, &destinations, &*clock)).await {
            None => return Ok(()),
            // A full round: there may be more.
            Some(Ok(MOST)) => continue,
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%error, "cannot deliver webhooks"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
            _ = announced.recv() => {}
        }
    }
}

/// Makes the deliveries that are due and returns their number.
async fn round(
    store: &Store,
    key: &ServiceKey,
    destinations: &Destinations,
    clock: &dyn Clock,
) -> Result<usize, StoreError> {
    let due = webhooks::claim(&mut *store.acquire().await?, MOST as i64, DEADLINE * 3).await?;
    let made = due.len();
    let mut answers = stream::iter(due)
        .map(|due| async move { (post(&due, key, destinations, clock).await, due) })
        .buffer_unordered(MOST);
    while let Some((answer, due)) = answers.next().await {
        let mut conn = store.acquire().await?;
        match answer {
            Ok(()) => webhooks::delivered(&mut conn, &due).await?,
            Err(error) => {
                let pause = PAUSES.get(due.attempts as usize - 1).copied();
                webhooks::failed(&mut conn, &due, &error, pause.map(Duration::from_secs)).await?;
            }
        }
    }
    Ok(made)
}

async fn post(
    due: &Due,
    key: &ServiceKey,
    destinations: &Destinations,
    clock: &dyn Clock,
) -> Result<(), String> {
    // With the time, because a database that went back to a backup numbers its events from there again.
    let id = format!("{}-{}-{}", due.webhook_id, due.event_id, due.at.unix_timestamp_nanos());
    let at = due.at.format(&Rfc3339).map_err(|e| e.to_string())?;
    let body = json!({
        "type": format!("job.{}", due.kind),
        "timestamp": at,
        "data": {
            "event_id": due.event_id, "job_id": due.job_id, "kind": due.kind,
            "message": due.message, "data": due.data,
        },
    });
    let body = serde_json::to_vec(&body).map_err(|e| e.to_string())?;
    let now = clock.now().unix_timestamp();
    let signature = key.sign(due.webhook_id, &id, now, &body)?;
    let headers = [
        ("webhook-id", id),
        ("webhook-timestamp", now.to_string()),
        ("webhook-signature", signature),
    ];
    let client = Client::to_public(&due.url, destinations).map_err(failure)?.at_most(MOST_BYTES);
    client.post_raw("", body, &headers, DEADLINE).await.map_err(failure)
}

/// Why a delivery failed. It quotes neither the answer nor the address, which may hold a secret.
fn failure(error: NetError) -> String {
    match error {
        NetError::Status { status, .. } => format!("the receiver answered {status}"),
        NetError::Connect { reason, .. } => format!("cannot reach the receiver: {reason}"),
        NetError::Broken { reason, .. } => {
            format!("lost the connection to the receiver: {reason}")
        }
        NetError::Timeout { seconds, .. } => {
            format!("the receiver did not answer within {seconds} s")
        }
        NetError::Private { reason, .. } | NetError::Decode { reason, .. } => reason,
    }
}
