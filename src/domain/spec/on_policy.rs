//! Policy gradients on the newest episodes.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Settings of GRPO (algorithms: §3.4). `rollout.group` says how many episodes share a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct GrpoSpec {
    /// Whether an advantage is divided by the standard deviation of its group's returns.
    #[garde(skip)]
    pub normalize: bool,
    /// Bounds of the ratio of the policy to the one that sampled; null is importance sampling without bounds.
    #[garde(dive)]
    pub clip: Option<ClipSpec>,
    /// β: weight of the divergence from the base model (k3). 0 asks the base model nothing.
    #[garde(range(min = 0.0, max = 10.0))]
    #[schema(minimum = 0.0, maximum = 10.0)]
    pub kl_weight: f32,
}

/// Bounds of the ratio of two policies for a token. Beyond them, an example pulls no further.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct ClipSpec {
    /// Lower bound.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub low: f32,
    /// Upper bound.
    #[garde(range(min = 1.0, max = 100.0))]
    #[schema(minimum = 1.0, maximum = 100.0)]
    pub high: f32,
}

impl Default for ClipSpec {
    fn default() -> Self {
        Self { low: 0.8, high: 1.2 }
    }
}

impl Default for GrpoSpec {
    fn default() -> Self {
        Self { normalize: true, clip: Some(ClipSpec::default()), kl_weight: 0.001 }
    }
}
