//! When a job has had enough.

use sqlx::PgConnection;

use crate::{
    domain::job::Job,
    store::{StoreError, iterations, replay},
};

/// Which budget is spent once iteration `index` has learnt, in a sentence; none if it goes on.
pub async fn spent(
    conn: &mut PgConnection,
    job: &Job,
    index: i32,
) -> Result<Option<String>, StoreError> {
    let budget = &job.spec.budget;
    if !job.spec.algorithm.trains() {
        return Ok(Some("nothing is trained: one evaluation is all".into()));
    }
    if index.cast_unsigned() >= budget.iterations {
        return Ok(Some(format!("all {} iterations are taken", budget.iterations)));
    }
    // Most jobs count iterations alone; sums over everything generated are not free.
    let sums = if budget.optimizer_steps.or(budget.tokens).or(budget.wall_seconds).is_some() {
        Some(iterations::spent(conn, job.id).await?)
    } else {
        None
    };
    let env_steps = match budget.env_steps {
        Some(_) => Some(replay::env_steps(conn, job.id, i32::MAX).await?),
        None => None,
    };
    let counted = [
        ("optimizer steps", budget.optimizer_steps, sums.map(|s| s.optimizer_steps)),
        ("environment steps", budget.env_steps, env_steps),
        ("tokens", budget.tokens, sums.map(|s| s.tokens)),
        ("seconds", budget.wall_seconds, sums.map(|s| s.wall_seconds as i64)),
    ];
    Ok(counted.into_iter().find_map(|(what, limit, used)| {
        let (limit, used) = (limit?, used?.cast_unsigned());
        (used >= limit).then(|| format!("{used} {what} are spent of {limit}"))
    }))
}
