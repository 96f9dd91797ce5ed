//! Whether a job and the peers that it names fit together, before anything starts.

use super::{
    generation::Weights,
    peer::{EngineCapabilities, EngineRecord, TrainerCapabilities, TrainerRecord},
    spec::{AlgorithmSpec, JobSpec, RoleWeights},
};

/// Why a job cannot run there, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Misfit {
    /// What does not fit.
    pub what: String,
    /// What to change.
    pub remedy: String,
}

fn misfit(what: impl Into<String>, remedy: impl Into<String>) -> Misfit {
    Misfit { what: what.into(), remedy: remedy.into() }
}

/// What the registration of a job's engine must be.
///
/// # Errors
/// Another model, or an engine that plays frozen parts only.
pub fn engine_registered(spec: &JobSpec, engine: &EngineRecord) -> Result<(), Misfit> {
    let EngineRecord { name, kind, model, .. } = engine;
    if !kind.serves_adapters() {
        return Err(misfit(
            format!("model.engine: {name} is of kind {kind}, which serves no adapters"),
            "name it as model.frozen, and a vLLM or SGLang engine as model.engine",
        ));
    }
    if *model != spec.model.base {
        return Err(misfit(
            format!("model.base: engine {name} has {model}, not {}", spec.model.base),
            format!("set model.base to {model}, or choose another engine"),
        ));
    }
    Ok(())
}

/// What the registration of a job's trainer must be.
///
/// # Errors
/// Another model.
pub fn trainer_registered(spec: &JobSpec, trainer: &TrainerRecord) -> Result<(), Misfit> {
    let TrainerRecord { name, model, .. } = trainer;
    if *model == spec.model.base {
        return Ok(());
    }
    Err(misfit(
        format!("model.base: trainer {name} has {model}, not {}", spec.model.base),
        format!("set model.base to {model}, or choose another trainer"),
    ))
}

/// What the registration of the engine of a job's frozen parts must be, and which parts those may be.
///
/// # Errors
/// Frozen parts without an engine for them or the reverse; a part that is learnt; an engine that is no chat
/// endpoint.
pub fn frozen_registered(spec: &JobSpec, frozen: Option<&EngineRecord>) -> Result<(), Misfit> {
    let RoleWeights {
        next_action,
        next_prediction,
        bellman,
        successor,
        evaluator,
        refiner,
        corrector,
    } = match &spec.algorithm {
        AlgorithmSpec::Nlac(nlac) => &nlac.weights,
        _ => &RoleWeights::default(),
    };
    let is_frozen = |weights: &&Weights| **weights == Weights::Frozen;
    if [next_action, next_prediction, successor].iter().any(is_frozen) {
        return Err(misfit(
            "algorithm.weights: next_action, next_prediction and successor are what is learnt, so they cannot \
             be frozen",
            "let bellman, evaluator, refiner or corrector be frozen",
        ));
    }
    let plays = [bellman, evaluator, refiner, corrector].iter().any(is_frozen);
    match frozen {
        None if plays => Err(misfit(
            "algorithm.weights: a part is frozen, but model.frozen names no engine for it",
            "set model.frozen to a registered engine of kind openai or tgi",
        )),
        Some(engine) if !plays => Err(misfit(
            format!("model.frozen: no part would be played by {}", engine.name),
            "give evaluator or another part in algorithm.weights the weights `frozen`",
        )),
        Some(EngineRecord { name, kind, .. }) if kind.serves_adapters() => Err(misfit(
            format!("model.frozen: {name} is of kind {kind}"),
            "register the same server as kind openai under another name",
        )),
        _ => Ok(()),
    }
}

/// What a job's engine must be able to do.
///
/// # Errors
/// The first thing that it cannot.
pub fn engine_able(
    spec: &JobSpec,
    engine: &EngineRecord,
    found: &EngineCapabilities,
) -> Result<(), Misfit> {
    let EngineRecord { name, base_model, .. } = engine;
    if !found.models.contains(base_model) {
        let served = found.models.join(", ");
        return Err(misfit(
            format!("engine {name} does not serve {base_model}; it serves {served}"),
            "register it under the name that it serves, or start it with --served-model-name",
        ));
    }
    if spec.algorithm.trains() && !found.runtime_adapters {
        return Err(misfit(
            format!("engine {name} loads no adapters while it runs"),
            "start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, SGLang with --enable-lora, \
             --max-lora-rank and --lora-target-modules; then register it again",
        ));
    }
    if let Some(most) = found.max_rank.filter(|most| spec.lora.rank > *most) {
        return Err(misfit(
            format!("lora.rank is {}, engine {name} takes {most} at most", spec.lora.rank),
            "lower lora.rank, or start the engine with a higher --max-lora-rank",
        ));
    }
    let longest = longest_answer(spec);
    if let Some(room) = found.max_model_len.filter(|room| longest >= *room) {
        return Err(misfit(
            format!(
                "an answer of {longest} tokens leaves no room for a prompt in engine {name}'s {room}"
            ),
            "lower max_tokens, or start the engine with a higher --max-model-len",
        ));
    }
    Ok(())
}

/// What a job's trainer must be able to do.
///
/// # Errors
/// Another base model.
pub fn trainer_able(trainer: &TrainerRecord, found: &TrainerCapabilities) -> Result<(), Misfit> {
    let TrainerRecord { name, base_model, .. } = trainer;
    if found.models.contains(base_model) {
        return Ok(());
    }
    let trained = found.models.join(", ");
    Err(misfit(
        format!("trainer {name} does not train {base_model}; it trains {trained}"),
        "register it under the name that it tells, or start it with that model",
    ))
}

/// Most tokens that any part may write on the job's own engine.
fn longest_answer(spec: &JobSpec) -> u32 {
    let of_algorithm = match &spec.algorithm {
        AlgorithmSpec::Nlac(nlac) => {
            let (w, s) = (&nlac.weights, &nlac.sampling);
            let parts = [
                (w.next_action, s.next_action),
                (w.next_prediction, s.next_prediction),
                (w.bellman, s.bellman),
                (w.successor, s.successor),
                (w.evaluator, s.evaluator),
                (w.refiner, s.refiner),
                (w.corrector, s.corrector),
            ];
            let ours = parts.iter().filter(|(weights, _)| *weights != Weights::Frozen);
            ours.map(|(_, sampling)| sampling.max_tokens).max().unwrap_or(0)
        }
        AlgorithmSpec::ScalarCritic(scalar) => scalar.action.max_tokens,
        AlgorithmSpec::RejectionFineTuning(_) | AlgorithmSpec::React(_) => 0,
    };
    of_algorithm.max(spec.rollout.max_tokens)
}
