//! Which transitions are replayed.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which transitions are replayed (algorithms: NLAC §1.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct ReplaySpec {
    /// Transitions annotated per iteration.
    #[garde(range(min = 1, max = 1_000_000))]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub batch: u32,
    /// Transitions kept; the oldest leave first. Each costs about 100 bytes of memory while an iteration draws its batch.
    #[garde(range(min = 1, max = 10_000_000))]
    #[schema(minimum = 1, maximum = 10_000_000)]
    pub capacity: u32,
    /// Exponent on the critic's loss; 0 is uniform.
    #[garde(range(min = 0.0, max = 4.0))]
    #[schema(minimum = 0.0, maximum = 4.0)]
    pub priority_exponent: f32,
    /// Share of the batch drawn uniformly.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub uniform_share: f32,
    /// Least share of the batch that ends an episode.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub terminal_share: f32,
    /// Least share of the batch that ends a solved episode. These endings count towards `terminal_share` as well.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub solved_share: f32,
    /// Exponent β of the importance weights on L1 at the first iteration; 0 leaves the loss as it is.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub importance_start: f32,
    /// The same at the last iteration; in between it changes linearly.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub importance_end: f32,
    /// Added to the loss of a transition whose last verdict was No, in units of the mean loss, so that
    /// replay also favours what the policy does badly.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub refused_bonus: f32,
    /// Oldest transitions that are drawn, in policy versions; without it age does not matter.
    #[garde(inner(range(min = 1, max = 100_000)))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_staleness: Option<u32>,
    /// Relabels steps with goals that their episodes reached, where the environment tells them; null is off.
    #[garde(dive)]
    pub hindsight: Option<HindsightSpec>,
}

/// How episodes are relabelled with goals that they reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct HindsightSpec {
    /// Which goals.
    #[garde(skip)]
    pub strategy: HindsightStrategy,
    /// Most goals of an episode; with `future`, of each of its steps.
    #[garde(range(min = 1, max = 1_000))]
    #[schema(minimum = 1, maximum = 1_000)]
    pub goals_per_episode: u32,
    /// Most of the batch that is relabelled, 0 to 1.
    #[garde(range(min = 0.0, max = 0.95))]
    #[schema(minimum = 0.0, maximum = 0.95)]
    pub share: f32,
}

/// Which goals an episode is relabelled with. The commanded goal is never one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HindsightStrategy {
    /// Those that the last successful step of the episode reached.
    Final,
    /// For each step, some that it or a later step reached.
    Future,
    /// Some of all that the episode reached, as an observer who knows them would name them.
    #[default]
    Oracle,
}

impl Default for ReplaySpec {
    fn default() -> Self {
        Self {
            batch: 256,
            capacity: 100_000,
            priority_exponent: 0.6,
            uniform_share: 0.1,
            terminal_share: 0.45,
            solved_share: 0.0,
            importance_start: 0.0,
            importance_end: 0.0,
            refused_bonus: 0.0,
            max_staleness: None,
            hindsight: None,
        }
    }
}

impl Default for HindsightSpec {
    fn default() -> Self {
        Self { strategy: HindsightStrategy::default(), goals_per_episode: 4, share: 0.8 }
    }
}
