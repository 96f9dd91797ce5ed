//! A job that trains nothing: a policy plays, and is measured.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::ids::{CheckpointId, JobId};

/// What is evaluated, and on what. `evaluation` says by which tasks, and at which temperatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluatedSpec {
    /// The checkpoint that acts. Without one, the model of `model.engine` acts as it is: the base model, which is ReAct,
    /// or a chat model.
    #[garde(skip)]
    pub checkpoint: Option<CheckpointId>,
    /// Episodes of each task. They differ by what the policy samples alone. The results have pass^k for every k up to this.
    #[garde(range(min = 1, max = 64))]
    #[schema(minimum = 1, maximum = 64)]
    pub trials: u32,
    /// A job whose last evaluation this one is compared with, task by task. Both need the same seed.
    #[garde(skip)]
    pub against: Option<JobId>,
}

impl Default for EvaluatedSpec {
    fn default() -> Self {
        Self { checkpoint: None, trials: 1, against: None }
    }
}
