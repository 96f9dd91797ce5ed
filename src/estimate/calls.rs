//! What an iteration of each algorithm asks of the engine and the trainer: calls, rollouts and examples.

use super::{End, projection::Projection};
use crate::domain::{
    generation::Role,
    spec::{Ablation, AlgorithmSpec, NlacSpec, ScalarSpec},
    training::Objective,
};

/// The scalar critic says a value in so many tokens at most.
const VALUE_TOKENS: u32 = 4;

/// Calls of one kind in an iteration: who speaks, tokens at most, how often.
type Calls = Vec<(Role, u32, f64)>;

impl Projection<'_> {
    /// Real rollouts that stand in for the predictions about a transition.
    pub(super) fn rollouts(&self, index: u32) -> f64 {
        match &self.spec.algorithm {
            AlgorithmSpec::Nlac(nlac) if nlac.ablation == Ablation::RawRollouts => {
                let warmup = index <= nlac.warmup_iterations;
                let rounds = if warmup { 1 } else { nlac.rounds.max(1) };
                f64::from(nlac.futures * rounds)
            }
            _ => 0.0,
        }
    }

    /// Steps of a rollout from a stored state on: half an episode in the mean.
    pub(super) fn rest(&self) -> Option<f64> {
        match self.end {
            End::Least => Some(1.0),
            End::Likely => self.steps().map(|steps| f64::midpoint(steps, 1.0)),
            End::Most => Some(self.most_steps()),
        }
    }

    /// Calls of an iteration that takes `acted` steps and replays `batch` transitions.
    pub(super) fn calls(&self, index: u32, acted: f64, batch: f64) -> Option<Calls> {
        let rollout = &self.spec.rollout;
        let mut calls = vec![(Role::Policy, rollout.max_tokens, acted)];
        match &self.spec.algorithm {
            AlgorithmSpec::Nlac(nlac) => self.annotate(nlac, index, batch, &mut calls)?,
            AlgorithmSpec::ScalarCritic(scalar) => self.value(scalar, index, batch, &mut calls)?,
            AlgorithmSpec::RejectionFineTuning(_) | AlgorithmSpec::React(_) => {}
        }
        let rehearsal = &self.spec.rehearsal;
        calls.push((Role::Policy, rehearsal.max_tokens, self.rehearsed()));
        calls.retain(|(.., count)| *count > 0.0);
        Some(calls)
    }

    fn rehearsed(&self) -> f64 {
        let replayed = self.spec.algorithm.replay().map_or(0, |replay| replay.batch);
        (f64::from(replayed) * f64::from(self.spec.rehearsal.share)).round()
    }

    fn annotate(&self, nlac: &NlacSpec, index: u32, batch: f64, calls: &mut Calls) -> Option<()> {
        let sampling = &nlac.sampling;
        let open = batch * self.rate(self.observed.open.as_ref(), 0.0, 1.0)?;
        // The backup; an ending has nothing to bootstrap from.
        let (bootstrapped, joined) = match (nlac.ablation, self.end) {
            (Ablation::RawRollouts, _) => (0.0, 0.0),
            // The more transitions are open, the fewer are endings: the bounds are not of one world.
            (Ablation::TerminalTargets, End::Least) => (0.0, 0.0),
            (Ablation::TerminalTargets, End::Likely) => (0.0, batch - open),
            (Ablation::TerminalTargets, End::Most) => (0.0, batch),
            _ => (open, batch),
        };
        calls.push((Role::Policy, sampling.next_action.max_tokens, bootstrapped));
        calls.push((Role::Successor, sampling.next_prediction.max_tokens, bootstrapped));
        // A target that is not accepted is written once more.
        let tries = if self.end == End::Most { 2.0 } else { 1.0 };
        calls.push((Role::Bellman, sampling.bellman.max_tokens, joined * tries));
        if nlac.correct_reasoning {
            let corrected = if self.end == End::Least { 0.0 } else { joined * tries };
            calls.push((Role::Corrector, sampling.corrector.max_tokens, corrected));
        }
        // Judging and refining: while the critic warms up, only the first verdict is asked for.
        let warmup = index <= nlac.warmup_iterations;
        let (mut judged, mut refined) = (0.0, 0.0);
        match nlac.ablation {
            Ablation::BestOfActions { candidates } if !warmup => {
                let acted = batch * f64::from(candidates);
                calls.push((Role::Policy, self.spec.rollout.max_tokens, acted));
                // What means the same, or nothing, is not judged.
                judged = if self.end == End::Least { 0.0 } else { acted };
            }
            _ if warmup || nlac.rounds == 0 => judged = batch,
            _ => {
                let no = self.rate(self.observed.noes.as_ref(), 0.0, 1.0)?;
                let mut left = batch;
                for _ in 0..nlac.rounds {
                    judged += left;
                    left *= no;
                    refined += left;
                }
            }
        }
        let futures = judged * f64::from(nlac.futures);
        if nlac.ablation == Ablation::RawRollouts {
            let rest = self.rest()?;
            calls.push((Role::Policy, self.spec.rollout.max_tokens, futures * (rest - 1.0)));
            calls.push((Role::Bellman, sampling.bellman.max_tokens, futures * rest));
        } else {
            calls.push((Role::Successor, sampling.successor.max_tokens, futures));
        }
        calls.push((Role::Evaluator, sampling.evaluator.max_tokens, judged));
        calls.push((Role::Refiner, sampling.refiner.max_tokens, refined));
        Some(())
    }

    fn value(&self, scalar: &ScalarSpec, index: u32, batch: f64, calls: &mut Calls) -> Option<()> {
        let open = batch * self.rate(self.observed.open.as_ref(), 0.0, 1.0)?;
        let values = f64::from(scalar.values);
        let candidates = match index <= scalar.warmup_iterations {
            true => 0.0,
            false => batch * f64::from(scalar.candidates),
        };
        calls.push((Role::Policy, scalar.action.max_tokens, open));
        calls.push((Role::Policy, self.spec.rollout.max_tokens, candidates));
        calls.push((Role::Value, VALUE_TOKENS, (open + candidates) * values));
        Some(())
    }

    /// Training examples: what cannot be read is left out, so the bounds reach down to nothing.
    pub(super) fn examples(&self, batch: f64) -> Option<Vec<(Objective, f64)>> {
        let rate = |objective: Objective, most: f64| {
            let measured = self.observed.examples.get(&objective);
            Some((objective, batch * self.rate(measured, 0.0, most)?))
        };
        let rehearsed = match self.end {
            End::Least => 0.0,
            _ => self.rehearsed(),
        };
        let mut examples = match &self.spec.algorithm {
            AlgorithmSpec::Nlac(_) => {
                vec![rate(Objective::Critic, 1.0)?, rate(Objective::Policy, 1.0)?]
            }
            AlgorithmSpec::ScalarCritic(scalar) => vec![
                rate(Objective::Critic, 1.0)?,
                rate(Objective::Policy, f64::from(scalar.candidates))?,
            ],
            AlgorithmSpec::RejectionFineTuning(_) => vec![rate(Objective::Policy, 1.0)?],
            AlgorithmSpec::React(_) => Vec::new(),
        };
        examples.push((Objective::Rehearsal, rehearsed));
        examples.retain(|(_, count)| *count > 0.0);
        Some(examples)
    }
}
