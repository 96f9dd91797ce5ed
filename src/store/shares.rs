//! Shares of the processes in the places of engines and environments.

use sqlx::PgConnection;

use super::StoreError;
use crate::domain::ids::ProcessId;

/// Channel on which a process tells the others that it needs more places, or has given some back. The payload is its id.
pub const SHARES_CHANNEL: &str = "nlac_shares";

/// What a process asks for of one resource.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The resource.
    pub resource: &'a str,
    /// Places that all processes have together.
    pub capacity: i32,
    /// Places in use.
    pub held: i32,
    /// Places in use or waited for.
    pub wanted: i32,
}

/// A share that was granted for 30 seconds.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Share {
    /// The resource.
    pub resource: String,
    /// Places that it may use. Those in use beyond it end in their time.
    pub share: i32,
    /// Whether they are fewer than the process wants.
    pub hungry: bool,
}

/// Asks for shares, all in one statement. What all processes have together never exceeds the capacity.
///
/// # Errors
/// See [`StoreError`].
pub async fn take(
    conn: &mut PgConnection,
    process: ProcessId,
    wishes: &[Wish<'_>],
) -> Result<Vec<Share>, StoreError> {
    let column = |of: fn(&Wish<'_>) -> i32| wishes.iter().map(of).collect::<Vec<_>>();
    let resources: Vec<_> = wishes.iter().map(|wish| wish.resource).collect();
    Ok(sqlx::query_as(
        "-- shares::take
         select * from take_shares($1, $2, $3, $4, $5)",
    )
    .bind(process)
    .bind(resources)
    .bind(column(|wish| wish.capacity))
    .bind(column(|wish| wish.held))
    .bind(column(|wish| wish.wanted))
    .fetch_all(conn)
    .await?)
}
