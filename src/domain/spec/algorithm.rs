//! Training algorithms and their settings.

use garde::Validate;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use super::{
    baselines::{RejectionSpec, ScalarSpec},
    evaluated::EvaluatedSpec,
    glam::{PpoGlamSpec, SacGlamSpec},
    nlrl::NlrlSpec,
    on_policy::{GrpoSpec, PpoSpec},
    replay::ReplaySpec,
    roles::{RoleSampling, RoleWeights},
};
use crate::domain::{generation::Weights, prompt::PromptPart};

/// Training algorithm.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AlgorithmSpec {
    /// Natural Language Actor-Critic.
    Nlac(#[garde(dive)] NlacSpec),
    /// Natural language reinforcement learning: language values, and the best of several actions by them.
    Nlrl(#[garde(dive)] NlrlSpec),
    /// Rejection fine-tuning: imitates the successful episodes of the policy.
    RejectionFineTuning(#[garde(dive)] RejectionSpec),
    /// An actor-critic whose critic predicts a number.
    ScalarCritic(#[garde(dive)] ScalarSpec),
    /// GRPO: a policy gradient from groups of episodes of one task.
    Grpo(#[garde(dive)] GrpoSpec),
    /// PPO: a policy gradient from the values of a critic.
    Ppo(#[garde(dive)] PpoSpec),
    /// SAC-GLAM: an off-policy actor-critic over the admissible actions of the environment.
    SacGlam(#[garde(dive)] SacGlamSpec),
    /// PPO-GLAM: a policy gradient over the admissible actions of the environment.
    PpoGlam(#[garde(dive)] PpoGlamSpec),
    /// No training: evaluates a checkpoint, the base model (ReAct) or a chat model.
    Evaluation(#[garde(dive)] EvaluatedSpec),
}

impl AlgorithmSpec {
    /// The name in a spec.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// All names.
    #[must_use]
    pub const fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// Whether it trains anything.
    #[must_use]
    pub const fn trains(&self) -> bool {
        self.evaluated().is_none()
    }

    /// Whether its policy is an adapter that it trains or evaluates.
    #[must_use]
    pub const fn loads_adapters(&self) -> bool {
        match self.evaluated() {
            Some(evaluated) => evaluated.checkpoint_id.is_some(),
            None => true,
        }
    }

    /// Whether a frozen model plays a part.
    #[must_use]
    pub fn freezes(&self, part: PromptPart) -> bool {
        let weights = match self {
            Self::Nlac(nlac) => nlac.weights.of(part),
            Self::Nlrl(nlrl) => nlrl.weights.of(part),
            _ => None,
        };
        weights == Some(Weights::Frozen)
    }

    /// Evaluation episodes per task.
    #[must_use]
    pub const fn trials(&self) -> u32 {
        match self.evaluated() {
            Some(evaluated) => evaluated.trials,
            None => 1,
        }
    }

    /// What an evaluation job evaluates.
    #[must_use]
    pub const fn evaluated(&self) -> Option<&EvaluatedSpec> {
        match self {
            Self::Evaluation(evaluated) => Some(evaluated),
            _ => None,
        }
    }
}

/// Settings of Natural Language Actor-Critic (arXiv 2512.04601).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct NlacSpec {
    /// k: predictions that the evaluator reads.
    #[garde(range(min = 1, max = 16))]
    #[schema(minimum = 1, maximum = 16)]
    pub futures: u32,
    /// m: maximum number of refinement rounds. A verdict Yes ends them early.
    #[garde(range(max = 8))]
    #[schema(maximum = 8)]
    pub rounds: u32,
    /// What is distilled if the first verdict is Yes.
    #[garde(skip)]
    pub on_yes: OnYes,
    /// What is distilled if a verdict is No but the refinement is the same action for the environment, so
    /// that only the reasoning changed.
    #[garde(skip)]
    pub on_same_action: OnSameAction,
    /// Iterations in which only the critic learns. The policy rehearses its own actions meanwhile.
    #[garde(range(max = 10_000))]
    #[schema(maximum = 10_000)]
    pub warmup_iterations: u32,
    /// Weight of L1, the critic's loss.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub critic_weight: f32,
    /// Weight of L2, the policy's loss.
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub policy_weight: f32,
    /// How the target weights follow the online weights.
    #[garde(dive)]
    pub target: TargetUpdate,
    /// Rewrites the reasoning of each target so that it cites nothing that only the next observation shows.
    /// The prompt set needs a `corrector`. By default this is on if the model reasons before it predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(skip)]
    pub correct_reasoning: Option<bool>,
    /// Weights of each part.
    #[garde(skip)]
    pub weights: RoleWeights,
    /// Sampling of each part.
    #[garde(dive)]
    pub sampling: RoleSampling,
    /// Replay of transitions.
    #[garde(dive)]
    pub replay: ReplaySpec,
    /// Ablation: disables one part of the method to measure its effect.
    #[garde(dive)]
    pub ablation: Ablation,
}

impl NlacSpec {
    /// Whether the policy learns refined actions.
    #[must_use]
    pub const fn distills_refinements(&self) -> bool {
        self.rounds > 0 && !matches!(self.ablation, Ablation::BestOfActions { .. })
    }
}

/// What is distilled if no round changed the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnYes {
    /// The action itself, so that the policy keeps it.
    DistillOriginal,
    /// Nothing.
    Skip,
}

/// What is distilled if a refinement changes only the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSameAction {
    /// The refinement, with its reasoning.
    DistillRefinement,
    /// The original action.
    DistillOriginal,
    /// Nothing.
    Skip,
}

/// How the target weights follow the online weights at each publication.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetUpdate {
    /// target ← (1 − τ) target + τ online.
    MovingAverage {
        /// τ.
        #[garde(range(min = 0.0, max = 1.0))]
        #[schema(minimum = 0.0, maximum = 1.0)]
        rate: f32,
    },
    /// target ← online every N publications, and no change in between. 1 has no lag.
    Copy {
        /// N, the number of publications.
        #[garde(range(min = 1, max = 10_000))]
        #[schema(minimum = 1, maximum = 10_000)]
        every: u32,
    },
}

impl TargetUpdate {
    /// τ at a version.
    #[must_use]
    pub const fn rate(self, version: u32) -> f32 {
        match self {
            Self::MovingAverage { rate } => rate,
            Self::Copy { every } if version.is_multiple_of(every) => 1.0,
            Self::Copy { .. } => 0.0,
        }
    }
}

impl Default for TargetUpdate {
    fn default() -> Self {
        Self::MovingAverage { rate: 0.9 }
    }
}

/// Ablation: disables or replaces one part of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(rename_all = "snake_case")]
pub enum Ablation {
    /// The complete method.
    None,
    /// The successor is never trained.
    UntrainedCritic,
    /// Each transition is refined by the critique of another transition.
    ShuffledCritiques,
    /// Targets only at the ends of episodes: no bootstrapping.
    TerminalTargets,
    /// Self-Distillation: the evaluator reads `futures` real rollouts from the state in place of predictions.
    /// There is no successor.
    RawRollouts,
    /// NLQL: distills the best of several actions by the language critic. No refinement.
    BestOfActions {
        /// Number of actions that are sampled in each state.
        #[garde(range(min = 1, max = 16))]
        #[schema(minimum = 1, maximum = 16)]
        candidates: u32,
    },
}

impl Default for NlacSpec {
    fn default() -> Self {
        Self {
            futures: 1,
            rounds: 2,
            on_yes: OnYes::DistillOriginal,
            on_same_action: OnSameAction::DistillRefinement,
            warmup_iterations: 2,
            critic_weight: 1.0,
            policy_weight: 1.0,
            target: TargetUpdate::default(),
            correct_reasoning: None,
            weights: RoleWeights::default(),
            sampling: RoleSampling::default(),
            replay: ReplaySpec::default(),
            ablation: Ablation::None,
        }
    }
}
