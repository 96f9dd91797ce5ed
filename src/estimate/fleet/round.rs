//! What one iteration asks of engine, environment and trainer.

use super::{
    Assumed, Unusable,
    file::{Call, Example},
};
use crate::{
    algo::{self, Asked, Calls, Draw, End, Forecast},
    domain::{generation::Role, spec::JobSpec},
};

/// One iteration once the replay buffer is full and the critic is warm.
pub(super) struct Round {
    /// Environment steps of the rollouts.
    pub acted: f64,
    /// Calls of the rollouts.
    pub acting: Work,
    /// Calls of annotating.
    pub annotating: Work,
    /// Every pass counted.
    pub trained_tokens: f64,
    pub optimizer_steps: f64,
}

/// Calls of a phase.
#[derive(Default)]
pub(super) struct Work {
    pub calls: f64,
    pub prompt: f64,
    pub answer: f64,
    /// Calls of one transition that wait for each other, with their tokens.
    pub chain: Vec<Call>,
}

impl Work {
    fn add(&mut self, count: f64, call: Call) {
        self.calls += count;
        self.prompt += count * call.prompt;
        self.answer += count * call.answer;
    }
}

impl Round {
    pub fn of(spec: &JobSpec, job: &Assumed) -> Result<Self, Unusable> {
        let acted = job.steps * f64::from(spec.rollout.episodes);
        let iteration = spec.budget.iterations.max(1);
        let stored = acted * f64::from(iteration);
        let batch = match algo::of(&spec.algorithm).draw() {
            Draw::Replay(replay) => stored.min(replay.batch.min(replay.capacity).into()),
            Draw::Successes(rejection) => stored.min(rejection.batch.into()),
            Draw::Rollouts => acted,
            Draw::Nothing => 0.0,
        };
        let forecast = Forecast {
            end: End::Likely,
            iteration,
            batch,
            open: Some(job.open),
            noes: Some(job.noes),
            rest: Some(f64::midpoint(job.steps, 1.0)),
            rollout: &spec.rollout,
        };
        let asked = algo::of(&spec.algorithm).forecast(&forecast);
        let asked = asked.ok_or_else(|| Unusable::Missing("all rates".into()))?;
        let mut acting = Work::default();
        if acted > 0.0 {
            let call = job.call(Role::Policy)?;
            acting.add(acted, call);
            acting.chain = vec![call; job.steps.ceil() as usize];
        }
        let annotating = annotating(&asked, batch, job)?;
        let (mut examples, mut tokens) = (0.0, 0.0);
        for (objective, most) in &asked.examples {
            let Example { share, tokens: each } = job
                .examples
                .get(objective)
                .ok_or_else(|| Unusable::Missing(format!("`examples.{objective}`")))?;
            examples += batch * share.min(*most);
            tokens += batch * share.min(*most) * each;
        }
        let passes = f64::from(spec.optimizer.epochs);
        Ok(Self {
            acted,
            acting,
            annotating,
            trained_tokens: tokens * passes,
            optimizer_steps: (examples / f64::from(spec.optimizer.minibatch)).ceil() * passes,
        })
    }
}

fn annotating(asked: &Asked, batch: f64, job: &Assumed) -> Result<Work, Unusable> {
    let mut work = Work::default();
    for Calls { role, count, .. } in asked.calls.iter().filter(|calls| calls.count > 0.0) {
        let call = job.call(*role)?;
        work.add(*count, call);
        // A transition's calls of a role come one after the other, at most as often as there are of them.
        let each = if batch > 0.0 { (count / batch).ceil() } else { 0.0 };
        work.chain.extend(std::iter::repeat_n(call, each as usize));
    }
    Ok(work)
}

impl Assumed {
    fn call(&self, role: Role) -> Result<Call, Unusable> {
        let found = self.calls.get(&role).copied();
        found.ok_or_else(|| Unusable::Missing(format!("`calls.{role}`")))
    }
}
