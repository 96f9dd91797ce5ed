//! Moving one job on: when every unit of a phase is done, the next phase's units are planned; when
//! every phase is done, the next iteration's; when every iteration is done, the job is.

use serde_json::json;
use sqlx::PgConnection;

use super::{budget, phases};
use crate::{
    domain::{
        event::EventKind,
        ids::IterationId,
        ids::JobId,
        job::{Iteration, Job, JobStatus, Phase},
        metric::{Metric, names},
    },
    store::{StoreError, episodes, events, iterations, jobs, metrics, replay, work_items},
};

/// Moves a job on by at most one phase, under its lock.
pub async fn advance(conn: &mut PgConnection, id: JobId) -> Result<(), StoreError> {
    let Some(job) = jobs::lock(conn, id).await? else { return Ok(()) };
    match job.status {
        JobStatus::Queued => {
            jobs::move_status(conn, id, &[JobStatus::Queued], JobStatus::Running, None).await?;
            events::append(conn, id, EventKind::Started, "the job has started", json!({})).await?;
            begin(conn, &job, 0, -1).await
        }
        JobStatus::Running => match iterations::latest(conn, id).await? {
            Some(iteration) => go_on(conn, &job, &iteration).await,
            None => begin(conn, &job, 0, -1).await,
        },
        _ => Ok(()),
    }
}

/// Begins an iteration that starts from version `base`.
async fn begin(
    conn: &mut PgConnection,
    job: &Job,
    index: i32,
    base: i32,
) -> Result<(), StoreError> {
    let id = IterationId::new();
    let phase = phases::first(index.cast_unsigned());
    iterations::insert(conn, id, job.id, index, phase, base).await?;
    plan(conn, job, id, (index, base), false, phase).await
}

async fn plan(
    conn: &mut PgConnection,
    job: &Job,
    iteration: IterationId,
    (index, base): (i32, i32),
    last: bool,
    phase: Phase,
) -> Result<(), StoreError> {
    let units = phases::units(&job.spec, index.cast_unsigned(), last, phase, base);
    work_items::plan(conn, job.id, iteration, &units).await?;
    let message = format!("iteration {index}: {phase}");
    let data = json!({ "iteration": index, "phase": phase, "units": units.len() });
    events::append(conn, job.id, EventKind::PhaseStarted, &message, data).await
}

async fn go_on(
    conn: &mut PgConnection,
    job: &Job,
    iteration: &Iteration,
) -> Result<(), StoreError> {
    let tally = work_items::tally(conn, iteration.id, iteration.phase).await?;
    if tally.failed > 0 {
        let reason = tally.first_error.unwrap_or_default();
        let error = format!("{} in iteration {}: {reason}", iteration.phase, iteration.index);
        work_items::cancel_of_job(conn, job.id).await?;
        let from = [JobStatus::Running];
        jobs::move_status(conn, job.id, &from, JobStatus::Failed, Some(&error)).await?;
        return events::append(conn, job.id, EventKind::Failed, &error, json!({})).await;
    }
    if tally.open > 0 {
        return Ok(());
    }
    let index = iteration.index;
    let mut last = iteration.last;
    if iteration.phase == Phase::Publish
        && let Some(reason) = budget::spent(conn, job, index).await?
    {
        last = true;
        iterations::set_last(conn, iteration.id).await?;
        let data = json!({ "iteration": index });
        events::append(conn, job.id, EventKind::BudgetSpent, &reason, data).await?;
    }
    let next = phases::next(&job.spec, index.cast_unsigned(), last, iteration.phase);
    let (seconds, total) = iterations::enter_phase(conn, iteration.id, next).await?;
    let mut measured = vec![metric(
        &format!("{}{}", names::PHASE_SECONDS_PREFIX, iteration.phase),
        index,
        seconds,
    )];
    if iteration.phase == Phase::Evaluate {
        measured.extend(evaluated(conn, job, iteration).await?);
    }
    metrics::put_many(conn, job.id, &measured).await?;
    if next != Phase::Done {
        return plan(conn, job, iteration.id, (index, iteration.base), last, next).await;
    }
    finish(conn, job, iteration, total).await?;
    if !last {
        let base = iteration.roll_back_to.unwrap_or(index);
        return begin(conn, job, index + 1, base).await;
    }
    jobs::move_status(conn, job.id, &[JobStatus::Running], JobStatus::Succeeded, None).await?;
    let message = format!("the job is done after iteration {index}");
    events::append(conn, job.id, EventKind::Succeeded, &message, json!({})).await
}

fn metric(name: &str, iteration: i32, value: f64) -> Metric {
    Metric { name: name.into(), iteration, temperature: None, value }
}

/// Success on held-out episodes, per temperature.
async fn evaluated(
    conn: &mut PgConnection,
    job: &Job,
    iteration: &Iteration,
) -> Result<Vec<Metric>, StoreError> {
    let mut measured = Vec::new();
    for tally in episodes::evaluation(conn, iteration.id).await? {
        let mut put = |name: &str, value: f64| {
            let temperature = Some(tally.temperature);
            let name = name.to_owned();
            measured.push(Metric { name, iteration: iteration.index, temperature, value });
        };
        put(names::EVAL_EPISODES, tally.episodes as f64);
        put(names::EVAL_FAILED, tally.failed as f64);
        // Without a known outcome there is no rate, not a rate of 0.
        if tally.episodes > 0 {
            let known = tally.episodes as f64;
            put(names::EVAL_SUCCESS, tally.successes as f64 / known);
            put(names::EVAL_TURNS, tally.turns as f64 / known);
        }
        let message = format!(
            "{} of {} held-out episodes solved at temperature {}",
            tally.successes, tally.episodes, tally.temperature
        );
        let data = json!({
            "iteration": iteration.index, "temperature": tally.temperature,
            "successes": tally.successes, "episodes": tally.episodes, "failed": tally.failed,
        });
        events::append(conn, job.id, EventKind::Evaluated, &message, data).await?;
    }
    Ok(measured)
}

/// Writes an iteration's metrics and tells about it.
async fn finish(
    conn: &mut PgConnection,
    job: &Job,
    iteration: &Iteration,
    seconds: f64,
) -> Result<(), StoreError> {
    let sums = metrics::summary(conn, iteration.id).await?;
    let mut values = vec![
        (names::GENERATED_TOKENS, Some(sums.generated_tokens as f64)),
        (names::PROMPT_TOKENS, Some(sums.prompt_tokens as f64)),
        (names::TRAINED_TOKENS, Some(sums.trained_tokens as f64)),
        (names::OPTIMIZER_STEPS, Some(sums.steps as f64)),
        (names::ENV_STEPS, Some(replay::env_steps(conn, job.id).await? as f64)),
        (names::ITERATION_SECONDS, Some(seconds)),
        (names::CRITIC_LOSS, sums.critic_loss),
        (names::POLICY_LOSS, sums.policy_loss),
        (names::REHEARSAL_LOSS, sums.rehearsal_loss),
    ];
    let share = |part: i64, of: i64| (of > 0).then(|| part as f64 / of as f64);
    values.extend([
        (names::COLLECT_SUCCESS, share(sums.collected_successes, sums.collected)),
        (names::TARGETS_ACCEPTED, share(sums.targets_accepted, sums.targets)),
        (names::VERDICT_YES, share(sums.first_verdicts_yes, sums.first_verdicts)),
        (names::VERDICT_UNPARSEABLE, share(sums.first_verdicts_unparseable, sums.first_verdicts)),
        (names::REFINEMENT_CHANGED, share(sums.refinements_changed, sums.refinements)),
        (names::REFINEMENT_VALID, share(sums.refinements_valid, sums.refinements)),
    ]);
    let measured: Vec<_> = values
        .into_iter()
        .filter_map(|(name, value)| Some(metric(name, iteration.index, value?)))
        .collect();
    metrics::put_many(conn, job.id, &measured).await?;
    let data: serde_json::Map<_, _> = measured
        .iter()
        .map(|m| (m.name.clone(), json!(m.value)))
        .chain([("iteration".to_owned(), json!(iteration.index))])
        .collect();
    let message = format!("iteration {} is done", iteration.index);
    let kind = EventKind::IterationFinished;
    events::append(conn, job.id, kind, &message, data.into()).await
}
