//! Natural language reinforcement learning: where language values come from, and how actions are chosen by them.

use garde::Validate;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::ToSchema;

use super::{algorithm::TargetUpdate, replay::ReplaySpec, roles::SamplingSpec};
use crate::domain::generation::Weights;

/// Settings of NLRL (algorithms: §3.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct NlrlSpec {
    /// What a language value is written from.
    #[garde(dive)]
    pub form: ValueForm,
    /// N: actions that are sampled in each state. Equal ones are valued once.
    #[garde(range(min = 1, max = 16))]
    #[schema(minimum = 1, maximum = 16)]
    pub candidates: u32,
    /// Iterations in which only the language values are learnt, while the policy rehearses its own actions.
    #[garde(range(max = 10_000))]
    #[schema(maximum = 10_000)]
    pub warmup_iterations: u32,
    /// Weight of the loss on language values.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub critic_weight: f32,
    /// Weight of the policy's loss.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub policy_weight: f32,
    /// Which weights play which part.
    #[garde(skip)]
    pub weights: NlrlWeights,
    /// How each part is sampled.
    #[garde(dive)]
    pub sampling: NlrlSampling,
}

/// What a language value is written from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ValueForm {
    /// Language Monte Carlo: what really followed the action, in the iteration's own episodes.
    MonteCarlo(#[garde(dive)] MonteCarloSpec),
    /// Language temporal difference: the next observation, and predictions from there on. Off-policy, from replay.
    TemporalDifference(#[garde(dive)] TemporalDifferenceSpec),
}

/// Settings of language Monte Carlo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct MonteCarloSpec {
    /// Outcomes that one language value is written from, at most. Where the episodes hold fewer of the same action in
    /// the same state, and the environment is replayable, further rollouts are played from there. Their steps count.
    #[garde(range(min = 1, max = 16))]
    #[schema(minimum = 1, maximum = 16)]
    pub rollouts: u32,
}

/// Settings of language temporal difference. Its actions and predictions are those of the target weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct TemporalDifferenceSpec {
    /// Predictions that one language value is written from, each after an action of its own.
    #[garde(range(min = 1, max = 16))]
    #[schema(minimum = 1, maximum = 16)]
    pub variations: u32,
    /// How the target weights follow.
    #[garde(dive)]
    pub target: TargetUpdate,
    /// How a' is sampled.
    #[garde(dive)]
    pub next_action: SamplingSpec,
    /// How the prediction after a' is sampled.
    #[garde(dive)]
    pub next_prediction: SamplingSpec,
    /// Which transitions are replayed. `refused_bonus` counts for those where another action was chosen.
    #[garde(dive)]
    pub replay: ReplaySpec,
}

/// Which weights play which part of NLRL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NlrlWeights {
    /// Writes language values from outcomes.
    pub aggregator: Weights,
    /// Predicts the language values of candidates.
    pub value: Weights,
    /// Chooses among candidates.
    pub chooser: Weights,
}

/// How each part of NLRL is sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct NlrlSampling {
    /// Writes language values from outcomes.
    #[garde(dive)]
    pub aggregator: SamplingSpec,
    /// Predicts the language values of candidates.
    #[garde(dive)]
    pub value: SamplingSpec,
    /// Chooses among candidates.
    #[garde(dive)]
    pub chooser: SamplingSpec,
}

impl Default for NlrlSpec {
    fn default() -> Self {
        Self {
            form: ValueForm::MonteCarlo(MonteCarloSpec::default()),
            candidates: 10,
            warmup_iterations: 2,
            critic_weight: 1.0,
            policy_weight: 1.0,
            weights: NlrlWeights::default(),
            sampling: NlrlSampling::default(),
        }
    }
}

impl Default for MonteCarloSpec {
    fn default() -> Self {
        Self { rollouts: 4 }
    }
}

impl Default for TemporalDifferenceSpec {
    fn default() -> Self {
        let sampled = SamplingSpec { temperature: 1.0, max_tokens: 256 };
        Self {
            variations: 2,
            target: TargetUpdate::default(),
            next_action: sampled,
            next_prediction: sampled,
            replay: ReplaySpec::default(),
        }
    }
}

impl Default for NlrlWeights {
    fn default() -> Self {
        Self { aggregator: Weights::Target, value: Weights::Online, chooser: Weights::Target }
    }
}

impl Default for NlrlSampling {
    fn default() -> Self {
        let greedy = |max_tokens| SamplingSpec { temperature: 0.0, max_tokens };
        Self {
            aggregator: greedy(256),
            value: SamplingSpec { temperature: 1.0, max_tokens: 256 },
            chooser: greedy(64),
        }
    }
}
