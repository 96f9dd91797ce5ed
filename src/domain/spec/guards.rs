//! What watches a run, and how the critic's health is measured.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::guard::{Guard, GuardAction};

/// How one guard is set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct GuardSpec {
    /// Readings above it count; the guard's own default if none is given.
    #[garde(inner(range(min = 0.0, max = 1.0)))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub threshold: Option<f64>,
    /// How many readings in a row.
    #[garde(range(min = 1, max = 1000))]
    #[schema(minimum = 1, maximum = 1000)]
    pub patience: u32,
    /// What happens then.
    #[garde(skip)]
    pub action: GuardAction,
}

impl Default for GuardSpec {
    fn default() -> Self {
        Self { threshold: None, patience: 2, action: GuardAction::Warn }
    }
}

/// What watches a run; see each guard's own words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct GuardsSpec {
    /// Generative collapse.
    #[garde(dive)]
    pub collapse: GuardSpec,
    /// Hindsight in targets.
    #[garde(dive)]
    pub leakage: GuardSpec,
    /// An evaluator that approves of everything.
    #[garde(dive)]
    pub sycophancy: GuardSpec,
    /// Catastrophic forgetting.
    #[garde(dive)]
    pub forgetting: GuardSpec,
    /// Success that was there before.
    #[garde(dive)]
    pub regression: GuardSpec,
    /// Refinements that the environment cannot read.
    #[garde(dive)]
    pub invalid_refinements: GuardSpec,
    /// A critic that restates instead of predicting.
    #[garde(dive)]
    pub lazy_critic: GuardSpec,
}

impl GuardsSpec {
    /// How a guard is set.
    #[must_use]
    pub const fn of(&self, guard: Guard) -> &GuardSpec {
        match guard {
            Guard::Collapse => &self.collapse,
            Guard::Leakage => &self.leakage,
            Guard::Sycophancy => &self.sycophancy,
            Guard::Forgetting => &self.forgetting,
            Guard::Regression => &self.regression,
            Guard::InvalidRefinements => &self.invalid_refinements,
            Guard::LazyCritic => &self.lazy_critic,
        }
    }
}

/// How the critic's health is measured, at every evaluation. What is played and written for it trains
/// nothing and counts in no budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct HealthSpec {
    /// Held-out steps whose future is predicted, and refined actions that are played against the
    /// originals from the same state; 0 measures nothing.
    #[garde(range(max = 10_000))]
    #[schema(maximum = 10_000)]
    pub states: u32,
    /// Futures predicted for each step.
    #[garde(range(min = 1, max = 64))]
    #[schema(minimum = 1, maximum = 64)]
    pub futures: u32,
}

impl Default for HealthSpec {
    fn default() -> Self {
        Self { states: 64, futures: 4 }
    }
}

/// General prompts of the prompt set, answered by the base model and mixed into what is learnt: in
/// expectation the KL divergence from the base model on those prompts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct RehearsalSpec {
    /// Examples per replayed transition.
    #[garde(range(min = 0.0, max = 4.0))]
    #[schema(minimum = 0.0, maximum = 4.0)]
    pub share: f32,
    /// Weight of their loss.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub weight: f32,
    /// Most tokens of one answer.
    #[garde(range(min = 1, max = 32_768))]
    #[schema(minimum = 1, maximum = 32_768)]
    pub max_tokens: u32,
}

impl Default for RehearsalSpec {
    fn default() -> Self {
        Self { share: 0.0, weight: 1.0, max_tokens: 64 }
    }
}
