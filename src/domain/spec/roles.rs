//! Parts of the model: their weights and their sampling.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{generation::Weights, prompt::PromptPart};

/// Weights of each part. Targets need `target`. Tiny models keep their auxiliary parts on `base`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleWeights {
    /// a' inside the target.
    pub next_action: Weights,
    /// d' inside the target.
    pub next_prediction: Weights,
    /// The language Bellman backup.
    pub bellman: Weights,
    /// Predictions for the evaluator.
    pub successor: Weights,
    /// The evaluator.
    pub evaluator: Weights,
    /// Refiner.
    pub refiner: Weights,
    /// Corrector: removes hindsight from a target's reasoning.
    pub corrector: Weights,
    /// Writes the reasoning that leads to a refined action, for models that reason.
    pub rationale: Weights,
}

impl RoleWeights {
    /// Weights that play a part. None for the policy and the successor, and for parts of other algorithms.
    #[must_use]
    pub const fn of(&self, part: PromptPart) -> Option<Weights> {
        match part {
            PromptPart::Bellman | PromptPart::BellmanTerminal => Some(self.bellman),
            PromptPart::Evaluator => Some(self.evaluator),
            PromptPart::Refiner => Some(self.refiner),
            PromptPart::Corrector => Some(self.corrector),
            PromptPart::Rationale => Some(self.rationale),
            _ => None,
        }
    }
}

/// Sampling of each part.
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
    /// Predictions for the evaluator.
    #[garde(dive)]
    pub successor: SamplingSpec,
    /// The evaluator.
    #[garde(dive)]
    pub evaluator: SamplingSpec,
    /// Refiner.
    #[garde(dive)]
    pub refiner: SamplingSpec,
    /// Corrector: removes hindsight from a target's reasoning.
    #[garde(dive)]
    pub corrector: SamplingSpec,
    /// Writes the reasoning that leads to a refined action, for models that reason.
    #[garde(dive)]
    pub rationale: SamplingSpec,
}

/// Sampling of one part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SamplingSpec {
    /// 0 is greedy.
    #[garde(range(min = 0.0, max = 2.0))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: f32,
    /// Maximum number of tokens; of the answer alone where `reasoning_tokens` is set.
    #[garde(range(min = 1, max = 32_768))]
    #[schema(minimum = 1, maximum = 32_768)]
    pub max_tokens: u32,
    /// Maximum number of tokens of the reasoning before the answer. nlac then closes the reasoning, and the model
    /// answers. By default reasoning and answer share `max_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(range(min = 16, max = 131_072)))]
    #[schema(minimum = 16, maximum = 131_072)]
    pub reasoning_tokens: Option<u32>,
}

impl SamplingSpec {
    /// One budget for reasoning and answer.
    #[must_use]
    pub const fn new(temperature: f32, max_tokens: u32) -> Self {
        Self { temperature, max_tokens, reasoning_tokens: None }
    }

    /// Maximum number of tokens of reasoning and answer together.
    #[must_use]
    pub const fn most_tokens(&self) -> u32 {
        match self.reasoning_tokens {
            Some(reasoning) => self.max_tokens + reasoning,
            None => self.max_tokens,
        }
    }
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
            rationale: Weights::Target,
        }
    }
}

impl Default for RoleSampling {
    fn default() -> Self {
        let sampled = |max_tokens| SamplingSpec::new(1.0, max_tokens);
        let greedy = |max_tokens| SamplingSpec::new(0.0, max_tokens);
        Self {
            next_action: sampled(256),
            next_prediction: sampled(256),
            bellman: greedy(256),
            successor: sampled(256),
            evaluator: greedy(256),
            refiner: sampled(256),
            corrector: greedy(256),
            rationale: sampled(256),
        }
    }
}
