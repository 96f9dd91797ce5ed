//! Natural Language Actor-Critic: a batch of stored transitions becomes Bellman targets, critiques,
//! refined actions and training examples.
//!
//! ```text
//! critic   a' ~ policy(s')   d' ~ successor(s', a')   d* ~ bellman(s, a, r, s', d')      → L1 example
//! actor    d1..dk ~ successor(s, x)   q ~ evaluator(s, x, d1..dk)   x ← refiner(s, x, q) → L2 example
//! ```
//! The trained prompts hold neither what the target knew (r, s', d') nor what the teacher knew (a, q). Of a model that
//! reasons, the trained reasoning does not know it either.

mod advise;
mod best_of;
mod candidate;
mod corrector;
mod critic;
mod critique;
mod forecast;
mod health;
mod rationale;
mod real_rollouts;
mod refine;
mod rounds;
pub(super) mod successor;
pub(super) mod target;

use async_trait::async_trait;

use self::candidate::Candidate;
pub use self::{
    advise::{Advised, advise},
    health::{Foreseen, foresee, gains},
};
pub use super::Annotations;
use super::{Algorithm, Asked, Checkup, Draw, Forecast, Needs, Replayed};
use crate::domain::{
    fault::Fault,
    seed::SeedPath,
    spec::{Ablation, NlacSpec, TargetUpdate},
};

/// What NLAC is handed beside the transitions.
pub type Setting<'a> = super::Setting<'a, NlacSpec>;

impl Setting<'_> {
    /// Only the critic learns; the policy rehearses what it did.
    const fn is_warmup(&self) -> bool {
        self.iteration <= self.spec.warmup_iterations
    }

    /// Verdicts are acted on.
    const fn refines(&self) -> bool {
        !self.is_warmup() && self.spec.rounds > 0
    }

    fn seed_of(&self, replayed: &Replayed, part: &str) -> SeedPath {
        self.seed.index(replayed.position).label(part)
    }
}

#[async_trait]
impl Algorithm for NlacSpec {
    fn needs(&self) -> Needs {
        forecast::needs(self)
    }

    fn draw(&self) -> Draw<'_> {
        Draw::Replay(&self.replay)
    }

    fn target(&self) -> TargetUpdate {
        self.target
    }

    fn forecast(&self, forecast: &Forecast<'_>) -> Option<Asked> {
        forecast::asked(self, forecast)
    }

    async fn annotate(
        &self,
        setting: &super::Setting<'_, ()>,
        batch: &[Replayed],
    ) -> Result<Annotations, Fault> {
        annotate(&setting.with(self), batch).await
    }

    async fn health(
        &self,
        setting: &super::Setting<'_, ()>,
        checkup: &Checkup,
    ) -> Result<Vec<(&'static str, f64)>, Fault> {
        health::measured(&setting.with(self), checkup).await
    }
}

/// Annotates a batch. Everything that depends on nothing else is asked for at once, so that the engine sees
/// waves as wide as the batch. A transition that the engine rejects is left out.
///
/// # Errors
/// The first other fault of the engine, or of a prompt, or a rejection of every transition. Then nothing of the
/// batch may be kept.
pub async fn annotate(setting: &Setting<'_>, batch: &[Replayed]) -> Result<Annotations, Fault> {
    let mut annotations = Annotations::default();
    critic::learn(setting, batch, &mut annotations).await?;
    let mut candidates: Vec<_> = batch.iter().map(Candidate::of).collect();
    improve(setting, &mut candidates, &mut annotations).await?;
    rationale::explain(setting, &mut candidates, &mut annotations).await?;
    for candidate in &candidates {
        annotations.examples.extend(candidate.example(setting)?);
    }
    annotations.unless_all_are_left_out(batch)
}

/// Makes every action better, by rounds of critique and refinement or by choosing the best of several.
async fn improve(
    setting: &Setting<'_>,
    candidates: &mut [Candidate<'_>],
    annotations: &mut Annotations,
) -> Result<(), Fault> {
    match setting.spec.ablation {
        Ablation::BestOfActions { candidates: count } if !setting.is_warmup() => {
            best_of::improve(setting, count, candidates, annotations).await
        }
        _ => rounds::play(setting, candidates, annotations).await,
    }
}
