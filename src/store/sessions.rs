//! Who is signed in on the pages.

use sqlx::PgConnection;
use time::Duration;

use super::StoreError;
use crate::domain::{
    access::Secret,
    ids::{KeyId, SessionId},
};

/// Begins a session of a key, and forgets those that have ended.
///
/// # Errors
/// See [`StoreError`].
pub async fn insert(
    conn: &mut PgConnection,
    key: KeyId,
    cookie: &Secret,
    lasts: Duration,
) -> Result<(), StoreError> {
    sqlx::query(
        "-- sessions::insert
         with ended as (delete from sessions where expires_at <= now())
         insert into sessions (id, hash, key_id, expires_at)
         values ($1, $2, $3, now() + $4 * interval '1 second')",
    )
    .bind(SessionId::new())
    .bind(cookie.hash())
    .bind(key)
    .bind(lasts.as_seconds_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a session.
///
/// # Errors
/// See [`StoreError`].
pub async fn end(conn: &mut PgConnection, session: SessionId) -> Result<(), StoreError> {
    sqlx::query("-- sessions::end\n delete from sessions where id = $1")
        .bind(session)
        .execute(conn)
        .await?;
    Ok(())
}
