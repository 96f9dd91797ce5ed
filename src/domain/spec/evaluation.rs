//! How a job measures success.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::text_enum::text_enum;

text_enum!(
    /// A part of an environment's tasks.
    TaskSplit {
        /// Those that jobs measure with.
        HeldOut = "held_out",
        /// Those that jobs learn from.
        Train = "train",
    }
);

text_enum!(
    /// Where success comes from.
    EvaluationSource {
        /// The policy plays held-out episodes in the job's environment.
        Environment = "environment",
        /// Somebody else measures, and posts results.
        External = "external",
        /// Nobody measures.
        None = "none",
    }
);

/// When and how success is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationSpec {
    /// Where success comes from. What else is set here counts for the environment alone.
    #[garde(skip)]
    pub from: EvaluationSource,
    /// Iterations between evaluations; the first and the last round are always evaluated.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub every: u32,
    /// The part of the tasks that is played. Choose settings by `train`, so that the held-out tasks stay unseen.
    #[garde(skip)]
    pub tasks: TaskSplit,
    /// Episodes, first and last round.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub episodes: u32,
    /// Episodes in between.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub interim_episodes: u32,
    /// The temperature that success is quoted at.
    #[garde(range(min = 0.0, max = 2.0))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: f32,
    /// More temperatures, first and last round only.
    #[garde(length(max = 8), inner(range(min = 0.0, max = 2.0)))]
    #[schema(max_items = 8)]
    pub also: Vec<f32>,
}

impl Default for EvaluationSpec {
    fn default() -> Self {
        Self {
            from: EvaluationSource::Environment,
            every: 5,
            tasks: TaskSplit::HeldOut,
            episodes: 300,
            interim_episodes: 100,
            temperature: 0.5,
            also: vec![0.0, 1.0],
        }
    }
}
