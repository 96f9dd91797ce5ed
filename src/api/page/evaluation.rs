//! Results of a job's last evaluation.

use sqlx::PgConnection;

use crate::{
    api::problem::Problem,
    evaluation::{Evaluation, shown},
    quantity::{self, Summary},
    store::read::{evaluations, jobs::JobRow},
};

/// The last evaluation as a table: one row per temperature.
pub(super) struct Table {
    /// Iteration that played the evaluation.
    pub iteration: i32,
    /// Each k with a column of pass^k.
    pub pass_hat: Vec<u32>,
    /// The job to compare with: id and name.
    pub against: Option<(String, String)>,
    pub rows: Vec<Row>,
}

pub(super) struct Row {
    pub temperature: f32,
    pub episodes: u64,
    pub unjudged: u64,
    pub success: String,
    pub mean_return: String,
    pub pass_hat: Vec<String>,
    pub difference: Option<String>,
}

/// Reads the evaluation. None before the job's first complete evaluation.
pub(super) async fn last(conn: &mut PgConnection, job: &JobRow) -> Result<Option<Table>, Problem> {
    let Some(last) = evaluations::last(conn, job.id).await? else { return Ok(None) };
    let mut against = None;
    if let Some(id) = job.spec.algorithm.evaluated().and_then(|evaluated| evaluated.against_job_id)
        && let Some(other) = super::job::row(conn, id).await?
    {
        let evaluations = evaluations::last(conn, id).await?.map(|last| last.evaluations);
        against =
            Some(((id.to_string(), other.spec.name.clone()), evaluations.unwrap_or_default()));
    }
    let (against, others) = against.unzip();
    let pass_hat: Vec<_> = shown(job.spec.algorithm.trials()).collect();
    let rows = last.evaluations.iter().map(|at| row(at, &pass_hat, others.as_deref())).collect();
    Ok(Some(Table { iteration: last.iteration, pass_hat, against, rows }))
}

fn row(at: &Evaluation, pass_hat: &[u32], others: Option<&[Evaluation]>) -> Row {
    let written = |summary: Option<Summary>, form: fn(f64, Option<f64>) -> String| {
        summary.map_or_else(|| "–".into(), |Summary { mean, margin, .. }| form(mean, margin))
    };
    let difference = others.map(|all| {
        let more = at.counterpart(all).and_then(|other| at.difference(other).success);
        written(more, quantity::points)
    });
    let all = at.pass_hat(pass_hat.last().copied().unwrap_or(0));
    let of = |k: &u32| written(all.get(*k as usize - 1).copied().flatten(), quantity::share);
    Row {
        temperature: at.temperature,
        episodes: at.episodes(),
        unjudged: at.unjudged(),
        success: written(at.success(), quantity::share),
        mean_return: written(at.mean_return(), quantity::mean),
        pass_hat: pass_hat.iter().map(of).collect(),
        difference,
    }
}
