//! What NLAC needs, and what it will ask of the engine, the environment and the trainer.

use crate::{
    algo::{Asked, Calls, End, Forecast, Needs},
    domain::{
        generation::{Role, Weights},
        prompt::PromptPart,
        spec::{Ablation, NlacSpec},
        training::Objective,
    },
};

/// What it needs beside what every job does.
pub(super) fn needs(nlac: &NlacSpec) -> Needs {
    let (w, s) = (&nlac.weights, &nlac.sampling);
    let parts = [
        (w.next_action, s.next_action),
        (w.next_prediction, s.next_prediction),
        (w.bellman, s.bellman),
        (w.successor, s.successor),
        (w.evaluator, s.evaluator),
        (w.refiner, s.refiner),
        (w.corrector, s.corrector),
        (w.rationale, s.rationale),
    ];
    let ours = parts.iter().filter(|(weights, _)| *weights != Weights::Frozen);
    Needs {
        prompts: (nlac.correct_reasoning == Some(true))
            .then_some(PromptPart::Corrector)
            .into_iter()
            .collect(),
        revisits: (nlac.ablation == Ablation::RawRollouts).then_some("/algorithm/ablation"),
        longest_answer: ours.map(|(_, sampling)| sampling.most_tokens()).max().unwrap_or(0),
        ..Needs::default()
    }
}

/// What annotating a batch asks; none where a rate is missing.
pub(super) fn asked(nlac: &NlacSpec, forecast: &Forecast<'_>) -> Option<Asked> {
    let mut asked = Asked {
        calls: backup(nlac, forecast)?,
        env_steps: 0.0,
        examples: vec![(Objective::Critic, 1.0), (Objective::Policy, 1.0)],
    };
    let [sampled, judged, refined] = rounds(nlac, forecast)?;
    let sampling = &nlac.sampling;
    let policy = |count| Calls::new(Role::Policy, forecast.rollout.sampling().most_tokens(), count);
    let futures = judged * f64::from(nlac.futures);
    asked.calls.push(policy(sampled));
    if nlac.ablation == Ablation::RawRollouts {
        // Every round that is played, however few actions are left in it, counts a batch of rollouts.
        let played = if is_warmup(nlac, forecast) { 1 } else { nlac.rounds.max(1) };
        let rest = forecast.rest?;
        asked.env_steps = forecast.batch * f64::from(nlac.futures * played) * rest;
        asked.calls.push(policy(futures * (rest - 1.0)));
        asked.calls.push(Calls::new(Role::Bellman, sampling.bellman.most_tokens(), futures * rest));
    } else {
        asked.calls.push(Calls::new(Role::Successor, sampling.successor.most_tokens(), futures));
    }
    asked.calls.push(Calls::new(Role::Evaluator, sampling.evaluator.most_tokens(), judged));
    asked.calls.push(Calls::new(Role::Refiner, sampling.refiner.most_tokens(), refined));
    let explained = explained(forecast, refined)?;
    asked.calls.push(Calls::new(Role::Rationale, sampling.rationale.most_tokens(), explained));
    Some(asked)
}

const fn is_warmup(nlac: &NlacSpec, forecast: &Forecast<'_>) -> bool {
    forecast.iteration <= nlac.warmup_iterations
}

/// The Bellman backup. An ending has nothing to bootstrap from.
fn backup(nlac: &NlacSpec, forecast: &Forecast<'_>) -> Option<Vec<Calls>> {
    let (batch, end, sampling) = (forecast.batch, forecast.end, &nlac.sampling);
    let open = batch * forecast.open?;
    let (bootstrapped, joined) = match (nlac.ablation, end) {
        (Ablation::RawRollouts, _) => (0.0, 0.0),
        // The more transitions are open, the fewer are endings: the bounds are not of one world.
        (Ablation::TerminalTargets, End::Least) => (0.0, 0.0),
        (Ablation::TerminalTargets, End::Likely) => (0.0, batch - open),
        (Ablation::TerminalTargets, End::Most) => (0.0, batch),
        _ => (open, batch),
    };
    let tries = tries(end);
    let corrected = match (nlac.correct_reasoning.unwrap_or(forecast.reasoning.successor), end) {
        (false, _) | (true, End::Least) => 0.0,
        (true, _) => joined * tries,
    };
    Some(vec![
        Calls::new(Role::Policy, sampling.next_action.most_tokens(), bootstrapped),
        Calls::new(Role::Successor, sampling.next_prediction.most_tokens(), bootstrapped),
        Calls::new(Role::Bellman, sampling.bellman.most_tokens(), joined * tries),
        Calls::new(Role::Corrector, sampling.corrector.most_tokens(), corrected),
    ])
}

/// What is not accepted is written once more.
const fn tries(end: End) -> f64 {
    match end {
        End::Least | End::Likely => 1.0,
        End::Most => 2.0,
    }
}

/// Refined actions of a policy that reasons get a reasoning, however often they were refined.
fn explained(forecast: &Forecast<'_>, refined: f64) -> Option<f64> {
    if refined == 0.0 || !forecast.reasoning.policy || forecast.end == End::Least {
        return Some(0.0);
    }
    Some(forecast.batch * forecast.noes? * tries(forecast.end))
}

/// Actions that are sampled, judged and refined. While the critic warms up, only the first verdict is asked for.
fn rounds(nlac: &NlacSpec, forecast: &Forecast<'_>) -> Option<[f64; 3]> {
    let batch = forecast.batch;
    let warmup = is_warmup(nlac, forecast);
    match nlac.ablation {
        Ablation::BestOfActions { candidates } if !warmup => {
            let sampled = batch * f64::from(candidates);
            // What means the same, or nothing, is not judged.
            let judged = if forecast.end == End::Least { 0.0 } else { sampled };
            Some([sampled, judged, 0.0])
        }
        _ if warmup || nlac.rounds == 0 => Some([0.0, batch, 0.0]),
        _ => {
            let noes = forecast.noes?;
            let (mut left, mut judged, mut refined) = (batch, 0.0, 0.0);
            for _ in 0..nlac.rounds {
                judged += left;
                left *= noes;
                refined += left;
            }
            Some([0.0, judged, refined])
        }
    }
}
