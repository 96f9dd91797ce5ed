//! What would fail at a job's start is refused before it; what cannot be known yet, or is silently left out,
//! is a warning.

use sqlx::PgConnection;

use super::{AppState, capabilities, problem::Problem};
use crate::{
    domain::{
        admission::{self, Misfit},
        peer::TrainerKind,
        spec::{Ablation, AlgorithmSpec, JobSpec},
    },
    store::{
        datasets,
        peers::{self, EngineView},
    },
};

impl From<Misfit> for Problem {
    fn from(Misfit { what, remedy }: Misfit) -> Self {
        Self::unprocessable(what).remedy(remedy)
    }
}

/// Checks a spec against what is registered and what that was found to be able to do; returns what the user
/// should know.
pub(super) async fn check_peers(state: &AppState, spec: &JobSpec) -> Result<Vec<String>, Problem> {
    let mut conn = state.store.acquire().await?;
    let engines = peers::engines(&mut conn).await?;
    let trainers = peers::trainers(&mut conn).await?;
    check_datasets(&mut conn, spec).await?;
    drop(conn);
    let engine = engine_named(&engines, "engine", &spec.model.engine)?;
    let trainer =
        trainers.iter().find(|t| t.record.name == spec.model.trainer).ok_or_else(|| {
            unregistered("trainer", &spec.model.trainer, trainers.iter().map(|t| &t.record.name))
        })?;
    let frozen = spec.model.frozen.as_deref();
    let frozen = frozen.map(|name| engine_named(&engines, "frozen", name)).transpose()?;
    admission::engine_registered(spec, &engine.record)?;
    admission::trainer_registered(spec, &trainer.record)?;
    admission::frozen_registered(spec, frozen.map(|view| &view.record))?;

    let mut warnings = Vec::new();
    match capabilities::engine(state, engine).await? {
        Ok(found) => admission::engine_able(spec, &engine.record, &found)?,
        Err(reason) => warnings.push(unknown("engine", &engine.record.name, &reason)),
    }
    match capabilities::trainer(state, trainer).await? {
        Ok(found) => admission::trainer_able(&trainer.record, &found)?,
        Err(reason) => warnings.push(unknown("trainer", &trainer.record.name, &reason)),
    }
    if trainer.record.kind == TrainerKind::SkyrlJax && spec.optimizer.grad_clip_norm > 0.0 {
        warnings.push(format!(
            "trainer {} does not clip gradients: optimizer.grad_clip_norm {} has no effect there; if the loss \
             jumps, lower the learning rate",
            trainer.record.name, spec.optimizer.grad_clip_norm
        ));
    }
    Ok(warnings)
}

fn unknown(what: &str, name: &str, reason: &str) -> String {
    format!("what {what} {name} can do is not known yet: {reason}")
}

fn engine_named<'a>(
    engines: &'a [EngineView],
    field: &str,
    name: &str,
) -> Result<&'a EngineView, Problem> {
    engines
        .iter()
        .find(|engine| engine.record.name == name)
        .ok_or_else(|| unregistered(field, name, engines.iter().map(|e| &e.record.name)))
}

fn unregistered<'a>(field: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Problem {
    let known: Vec<_> = known.map(String::as_str).collect();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    let route = if field == "trainer" { "trainers" } else { "engines" };
    Problem::unprocessable(format!(
        "model.{field}: {name:?} is not registered; registered: {known}"
    ))
    .remedy(format!("register it with PUT /v1/{route}/NAME"))
}

/// What is to be learnt from must be there.
async fn check_datasets(conn: &mut PgConnection, spec: &JobSpec) -> Result<(), Problem> {
    let mut logged = 0;
    for name in &spec.datasets {
        let size = datasets::size(conn, name).await?.ok_or_else(|| {
            Problem::unprocessable(format!("datasets: there is no {name:?}"))
                .remedy("import it with `nlac import FILE --dataset NAME`")
        })?;
        logged += size;
    }
    if spec.rollout.episodes == 0 && logged == 0 && spec.algorithm.trains() {
        return Err(Problem::unprocessable("rollout.episodes is 0 and there is no dataset")
            .remedy("collect episodes, or name a dataset that has some"));
    }
    let replays = match &spec.algorithm {
        AlgorithmSpec::Nlac(nlac) => nlac.ablation == Ablation::RawRollouts,
        _ => false,
    };
    if replays && logged > 0 {
        return Err(Problem::unprocessable("raw_rollouts cannot go on from logged states")
            .remedy("leave datasets empty, or choose another ablation"));
    }
    Ok(())
}

/// Parts that the algorithm plays must have a prompt.
pub(super) fn check_prompts(spec: &JobSpec, hashes: &serde_json::Value) -> Result<(), Problem> {
    if spec.rehearsal.share > 0.0 && hashes.get("general").is_none() {
        let detail = format!("rehearsal: prompt set {} has no general.yaml", spec.model.prompts);
        return Err(Problem::unprocessable(detail).remedy("choose a set that has it, or share: 0"));
    }
    let needed = match &spec.algorithm {
        AlgorithmSpec::Nlac(nlac) if nlac.correct_reasoning => "corrector",
        AlgorithmSpec::ScalarCritic(_) => "value",
        _ => return Ok(()),
    };
    if hashes.get(needed).is_some() {
        return Ok(());
    }
    let detail = format!("model.prompts: set {} has no {needed}.md", spec.model.prompts);
    Err(Problem::unprocessable(detail).remedy("choose a set that has it, or another algorithm"))
}
