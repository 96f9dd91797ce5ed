//! Units of work and the leases on them. Lease times are the database's own.

use std::time::Duration;

use sqlx::{PgConnection, postgres::types::PgInterval, types::Json};
use time::OffsetDateTime;

use super::StoreError;
use crate::domain::{
    ids::{IterationId, JobId, LeaseToken, WorkItemId},
    job::Phase,
    work::{Lease, Payload},
};

/// How many times a unit of work is tried.
pub const MAX_ATTEMPTS: i32 = 5;

/// What a heartbeat finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// The lease is held and was renewed.
    Held,
    /// It is somebody else's, or the job was cancelled.
    Lost,
}

/// How far a phase has come.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub struct Tally {
    /// Waiting or under way.
    pub open: i64,
    /// Finished.
    pub done: i64,
    /// Failed for good.
    pub failed: i64,
    /// Why the first of them failed.
    pub first_error: Option<String>,
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}

/// Plans units of work; those that are planned already stay as they are.
///
/// # Errors
/// See [`StoreError`].
pub async fn plan(
    conn: &mut PgConnection,
    job: JobId,
    iteration: IterationId,
    payloads: &[Payload],
) -> Result<(), StoreError> {
    for (ordinal, payload) in (0_i32..).zip(payloads) {
        sqlx::query(
            "-- work_items::plan
             insert into work_items (id, job_id, iteration_id, phase, ordinal, payload, state, max_attempts)
             values ($1, $2, $3, $4, $5, $6, 'ready', $7)
             on conflict (iteration_id, phase, ordinal) do nothing",
        )
        .bind(WorkItemId::new())
        .bind(job)
        .bind(iteration)
        .bind(payload.phase())
        .bind(ordinal)
        .bind(Json(payload))
        .bind(MAX_ATTEMPTS)
        .execute(&mut *conn)
        .await?;
    }
    sqlx::query("select pg_notify('nlac_work', '')").execute(conn).await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Claimed {
    id: WorkItemId,
    job_id: JobId,
    iteration_id: IterationId,
    payload: Json<Payload>,
    attempt: i32,
    max_attempts: i32,
    lease_expires_at: OffsetDateTime,
    reclaimed: bool,
}

/// Claims one unit of a running job: ready, or leased to somebody who let the lease lapse. Tells
/// whether it was taken over. A unit whose attempts are spent stays where it is.
///
/// # Errors
/// See [`StoreError`].
pub async fn claim(
    conn: &mut PgConnection,
    owner: &str,
    ttl: Duration,
) -> Result<Option<(Lease, bool)>, StoreError> {
    let token = LeaseToken::new();
    let claimed: Option<Claimed> = sqlx::query_as(
        "-- work_items::claim
         with next as (
             select w.id, w.state = 'leased' as reclaimed
             from work_items w join jobs j on j.id = w.job_id
             where j.status = 'running' and w.attempt < w.max_attempts
               and ((w.state = 'ready' and w.run_at <= now())
                    or (w.state = 'leased' and w.lease_expires_at < now()))
             order by w.run_at, w.id
             limit 1
             for update of w skip locked
         ), lost as (
             update work_attempts a set ended_at = now(), outcome = 'lost'
             from next where a.item_id = next.id and a.ended_at is null
         )
         update work_items w
         set state = 'leased', attempt = w.attempt + 1, lease_token = $1, lease_owner = $2,
             lease_expires_at = now() + $3
         from next where w.id = next.id
         returning w.id, w.job_id, w.iteration_id, w.payload, w.attempt, w.max_attempts,
             w.lease_expires_at, next.reclaimed",
    )
    .bind(token)
    .bind(owner)
    .bind(interval(ttl))
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = claimed else { return Ok(None) };
    sqlx::query(
        "-- work_items::claim
         insert into work_attempts (item_id, attempt, owner) values ($1, $2, $3)",
    )
    .bind(row.id)
    .bind(row.attempt)
    .bind(owner)
    .execute(conn)
    .await?;
    let lease = Lease {
        item_id: row.id,
        job_id: row.job_id,
        iteration_id: row.iteration_id,
        payload: row.payload.0,
        token,
        attempt: row.attempt,
        max_attempts: row.max_attempts,
        expires_at: row.lease_expires_at,
    };
    Ok(Some((lease, row.reclaimed)))
}

/// Renews a lease.
///
/// # Errors
/// See [`StoreError`].
pub async fn heartbeat(
    conn: &mut PgConnection,
    lease: &Lease,
    ttl: Duration,
) -> Result<Beat, StoreError> {
    let renewed = sqlx::query(
        "-- work_items::heartbeat
         update work_items set lease_expires_at = now() + $3
         where id = $1 and lease_token = $2 and state = 'leased'",
    )
    .bind(lease.item_id)
    .bind(lease.token)
    .bind(interval(ttl))
    .execute(conn)
    .await?;
    Ok(if renewed.rows_affected() == 1 { Beat::Held } else { Beat::Lost })
}

/// Proves that the lease is held, until the transaction ends. The first statement of every transaction
/// with effects.
///
/// # Errors
/// [`StoreError::LeaseLost`] if it is not.
pub async fn hold(conn: &mut PgConnection, lease: &Lease) -> Result<(), StoreError> {
    let held = sqlx::query(
        "-- work_items::hold
         select 1 from work_items where id = $1 and lease_token = $2 and state = 'leased' for update",
    )
    .bind(lease.item_id)
    .bind(lease.token)
    .fetch_optional(conn)
    .await?;
    held.map(|_| ()).ok_or(StoreError::LeaseLost)
}

/// Ends a lease in another state, closing its attempt.
async fn end(
    conn: &mut PgConnection,
    lease: &Lease,
    state: &str,
    outcome: &str,
    error: Option<&str>,
    delay: Duration,
) -> Result<(), StoreError> {
    let ended = sqlx::query(
        "-- work_items::end
         update work_items
         set state = $3, lease_token = null, lease_owner = null, lease_expires_at = null,
             last_error = coalesce($4, last_error), run_at = now() + $5,
             finished_at = case when $3 in ('done', 'failed') then now() end,
             attempt = attempt - case when $6 = 'released' then 1 else 0 end
         where id = $1 and lease_token = $2 and state = 'leased'",
    )
    .bind(lease.item_id)
    .bind(lease.token)
    .bind(state)
    .bind(error)
    .bind(interval(delay))
    .bind(outcome)
    .execute(&mut *conn)
    .await?;
    if ended.rows_affected() != 1 {
        return Err(StoreError::LeaseLost);
    }
    if outcome == "released" {
        sqlx::query("delete from work_attempts where item_id = $1 and attempt = $2")
            .bind(lease.item_id)
            .bind(lease.attempt)
            .execute(&mut *conn)
            .await?;
    } else {
        sqlx::query(
            "-- work_items::end
             update work_attempts set ended_at = now(), outcome = $3, error = $4
             where item_id = $1 and attempt = $2",
        )
        .bind(lease.item_id)
        .bind(lease.attempt)
        .bind(outcome)
        .bind(error)
        .execute(&mut *conn)
        .await?;
    }
    sqlx::query("select pg_notify('nlac_plan', ''), pg_notify('nlac_work', '')")
        .execute(conn)
        .await?;
    Ok(())
}

/// The work is done; its results are written in the same transaction.
///
/// # Errors
/// [`StoreError::LeaseLost`] if somebody else has it now.
pub async fn complete(conn: &mut PgConnection, lease: &Lease) -> Result<(), StoreError> {
    end(conn, lease, "done", "done", None, Duration::ZERO).await
}

/// The work is to be tried again after a pause.
///
/// # Errors
/// [`StoreError::LeaseLost`] if somebody else has it now.
pub async fn retry(
    conn: &mut PgConnection,
    lease: &Lease,
    error: &str,
    delay: Duration,
) -> Result<(), StoreError> {
    end(conn, lease, "ready", "retry", Some(error), delay).await
}

/// The work cannot be done.
///
/// # Errors
/// [`StoreError::LeaseLost`] if somebody else has it now.
pub async fn fail(conn: &mut PgConnection, lease: &Lease, error: &str) -> Result<(), StoreError> {
    end(conn, lease, "failed", "failed", Some(error), Duration::ZERO).await
}

/// Gives the work back untried, at an orderly shutdown.
///
/// # Errors
/// [`StoreError::LeaseLost`] if somebody else has it now.
pub async fn release(conn: &mut PgConnection, lease: &Lease) -> Result<(), StoreError> {
    end(conn, lease, "ready", "released", None, Duration::ZERO).await
}

/// Takes everything that is not finished off the queue. Holders notice at their next heartbeat or write.
///
/// # Errors
/// See [`StoreError`].
pub async fn cancel_of_job(conn: &mut PgConnection, job: JobId) -> Result<(), StoreError> {
    sqlx::query(
        "-- work_items::cancel_of_job
         with cancelled as (
             update work_items
             set state = 'cancelled', lease_token = null, lease_owner = null, lease_expires_at = null
             where job_id = $1 and state in ('ready', 'leased')
             returning id
         )
         update work_attempts a set ended_at = now(), outcome = 'cancelled'
         from cancelled where a.item_id = cancelled.id and a.ended_at is null",
    )
    .bind(job)
    .execute(conn)
    .await?;
    Ok(())
}

/// How far a phase has come.
///
/// # Errors
/// See [`StoreError`].
pub async fn tally(
    conn: &mut PgConnection,
    iteration: IterationId,
    phase: Phase,
) -> Result<Tally, StoreError> {
    Ok(sqlx::query_as(
        "-- work_items::tally
         select count(*) filter (where state in ('ready', 'leased')) as open,
             count(*) filter (where state = 'done') as done,
             count(*) filter (where state = 'failed') as failed,
             min(last_error) filter (where state = 'failed') as first_error
         from work_items where iteration_id = $1 and phase = $2",
    )
    .bind(iteration)
    .bind(phase)
    .fetch_one(conn)
    .await?)
}

/// Fails units whose last attempt was lost; returns how many.
///
/// # Errors
/// See [`StoreError`].
pub async fn fail_exhausted(conn: &mut PgConnection) -> Result<u64, StoreError> {
    let failed = sqlx::query(
        "-- work_items::fail_exhausted
         with spent as (
             update work_items
             set state = 'failed', lease_token = null, lease_owner = null, lease_expires_at = null,
                 finished_at = now(),
                 last_error = coalesce(last_error, 'every attempt was lost: the process died each time')
             where state = 'leased' and lease_expires_at < now() and attempt >= max_attempts
             returning id
         )
         update work_attempts a set ended_at = now(), outcome = 'lost'
         from spent where a.item_id = spent.id and a.ended_at is null",
    )
    .execute(conn)
    .await?;
    Ok(failed.rows_affected())
}

/// Makes leases of a process that is known to be gone claimable at once. That it was killed is not the
/// work's fault, so the attempt is given back; not for ever, lest work that kills its process does so
/// endlessly.
///
/// # Errors
/// See [`StoreError`].
pub async fn expire_all(conn: &mut PgConnection) -> Result<u64, StoreError> {
    let expired = sqlx::query(
        "-- work_items::expire_all
         update work_items
         set lease_expires_at = now() - interval '1 second', max_attempts = least(max_attempts + 1, 50)
         where state = 'leased'",
    )
    .execute(conn)
    .await?;
    Ok(expired.rows_affected())
}
