//! The parts that one model plays: with which weights, sampled how.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::generation::Weights;

/// Which weights play which part. Targets want `target`; tiny models keep their auxiliary parts on `base`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleWeights {
    /// a' inside the target.
    pub next_action: Weights,
    /// d' inside the target.
    pub next_prediction: Weights,
    /// The language Bellman backup.
    pub bellman: Weights,
    /// The futures that the evaluator reads.
    pub successor: Weights,
    /// The evaluator.
    pub evaluator: Weights,
    /// The refinement policy.
    pub refiner: Weights,
    /// Takes hindsight out of a target's reasoning.
    pub corrector: Weights,
}

/// How each part is sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSampling {
    /// a' inside the target.
    #[garde(dive)]
    pub next_action: SamplingSpec,
    /// d' inside the target.
    #[garde(dive)]
    pub next_prediction: SamplingSpec,
    /// The language Bellman backup.
    #[garde(dive)]
    pub bellman: SamplingSpec,
    /// The futures that the evaluator reads.
    #[garde(dive)]
    pub successor: SamplingSpec,
    /// The evaluator.
    #[garde(dive)]
    pub evaluator: SamplingSpec,
    /// The refinement policy.
    #[garde(dive)]
    pub refiner: SamplingSpec,
    /// Takes hindsight out of a target's reasoning.
    #[garde(dive)]
    pub corrector: SamplingSpec,
}

/// How one part is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SamplingSpec {
    /// 0 is greedy.
    #[garde(range(min = 0.0, max = 2.0))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: f32,
    /// Most tokens to write.
    #[garde(range(min = 1, max = 32_768))]
    #[schema(minimum = 1, maximum = 32_768)]
    pub max_tokens: u32,
}

impl Default for RoleWeights {
    fn default() -> Self {
        Self {
            next_action: Weights::Target,
            next_prediction: Weights::Target,
            bellman: Weights::Target,
            successor: Weights::Target,
            evaluator: Weights::Target,
            refiner: Weights::Target,
            corrector: Weights::Target,
        }
    }
}

impl Default for RoleSampling {
    fn default() -> Self {
        let sampled = |max_tokens| SamplingSpec { temperature: 1.0, max_tokens };
        let greedy = |max_tokens| SamplingSpec { temperature: 0.0, max_tokens };
        Self {
            next_action: sampled(256),
            next_prediction: sampled(256),
            bellman: greedy(256),
            successor: sampled(256),
            evaluator: greedy(256),
            refiner: sampled(256),
            corrector: greedy(256),
        }
    }
}
