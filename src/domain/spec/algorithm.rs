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

/// Training algorithm.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AlgorithmSpec {
    /// Natural Language Actor-Critic.
    Nlac(#[garde(dive)] NlacSpec),
    /// Natural language reinforcement learning: values in words, and the best of several actions by them.
    Nlrl(#[garde(dive)] NlrlSpec),
    /// Rejection fine-tuning: imitate one's own successes.
    RejectionFineTuning(#[garde(dive)] RejectionSpec),
    /// An actor-critic whose critic says a number.
    ScalarCritic(#[garde(dive)] ScalarSpec),
    /// GRPO: a policy gradient from groups of episodes of one task.
    Grpo(#[garde(dive)] GrpoSpec),
    /// PPO: a policy gradient from the values of a critic.
    Ppo(#[garde(dive)] PpoSpec),
    /// SAC-GLAM: an off-policy actor-critic over the actions that the environment says are possible.
    SacGlam(#[garde(dive)] SacGlamSpec),
    /// PPO-GLAM: a policy gradient over the actions that the environment says are possible.
    PpoGlam(#[garde(dive)] PpoGlamSpec),
    /// No training: a checkpoint, the base model (ReAct) or a chat model plays, and is measured.
    Evaluation(#[garde(dive)] EvaluatedSpec),
}

impl AlgorithmSpec {
    /// Its word in a spec.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The words of all.
    #[must_use]
    pub const fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// Something is learnt.
    #[must_use]
    pub const fn trains(&self) -> bool {
        self.evaluated().is_none()
    }

    /// Its policy is an adapter: one that it trains, or one that it evaluates.
    #[must_use]
    pub const fn loads_adapters(&self) -> bool {
        match self.evaluated() {
            Some(evaluated) => evaluated.checkpoint.is_some(),
            None => true,
        }
    }

    /// How many episodes of each task a job measures by.
    #[must_use]
    pub const fn trials(&self) -> u32 {
        match self.evaluated() {
            Some(evaluated) => evaluated.trials,
            None => 1,
        }
    }

    /// What a job evaluates that trains nothing.
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
    /// k: futures that the evaluator reads.
    #[garde(range(min = 1, max = 16))]
    #[schema(minimum = 1, maximum = 16)]
    pub futures: u32,
    /// m: refinement rounds; a Yes ends them early.
    #[garde(range(max = 8))]
    #[schema(maximum = 8)]
    pub rounds: u32,
    /// What is distilled when the first verdict is Yes.
    #[garde(skip)]
    pub on_yes: OnYes,
    /// What is distilled when a verdict is No and the refinement is the same action to the environment: it changes the
    /// reasoning alone.
    #[garde(skip)]
    pub on_same_action: OnSameAction,
    /// Iterations in which only the critic learns, while the policy rehearses its own actions.
    #[garde(range(max = 10_000))]
    #[schema(maximum = 10_000)]
    pub warmup_iterations: u32,
    /// Weight of L1 (the critic's loss).
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub critic_weight: f32,
    /// Weight of L2 (the policy's loss).
    #[garde(range(min = 0.0, max = 100.0))]
    #[schema(minimum = 0.0, maximum = 100.0)]
    pub policy_weight: f32,
    /// How the target weights follow.
    #[garde(dive)]
    pub target: TargetUpdate,
    /// Rewrite the reasoning of every target so that it cites nothing that only hindsight knows
    /// (for models that reason; the prompt set needs a `corrector`).
    #[garde(skip)]
    pub correct_reasoning: bool,
    /// Which weights play which part.
    #[garde(skip)]
    pub weights: RoleWeights,
    /// How each part is sampled.
    #[garde(dive)]
    pub sampling: RoleSampling,
    /// Which transitions are replayed.
    #[garde(dive)]
    pub replay: ReplaySpec,
    /// A part of the method switched off, to show what it does.
    #[garde(dive)]
    pub ablation: Ablation,
}

/// What is distilled when no round changed the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnYes {
    /// The action itself: the policy is told to go on like that.
    DistillOriginal,
    /// Nothing.
    Skip,
}

/// What is distilled when a refinement changes the reasoning alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSameAction {
    /// The refinement, with its reasoning.
    DistillRefinement,
    /// The action as it was.
    DistillOriginal,
    /// Nothing.
    Skip,
}

/// How the target weights follow the online weights, at each publication.
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
    /// target ← online at every so many publications, and nothing in between. 1 has no lag.
    Copy {
        /// Publications.
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

/// A part of the method switched off or replaced, to show what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(rename_all = "snake_case")]
pub enum Ablation {
    /// The whole method.
    None,
    /// The successor model is never trained.
    UntrainedCritic,
    /// Each transition is refined by another one's critique.
    ShuffledCritiques,
    /// Targets come from endings alone: nothing is bootstrapped.
    TerminalTargets,
    /// Self-Distillation: the evaluator reads `futures` real rollouts from the state instead of
    /// predictions; there is no successor model.
    RawRollouts,
    /// NLQL: the best of several actions by the language critic is distilled; nothing is refined.
    BestOfActions {
        /// Actions that are sampled in each state.
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
            correct_reasoning: false,
            weights: RoleWeights::default(),
            sampling: RoleSampling::default(),
            replay: ReplaySpec::default(),
            ablation: Ablation::None,
        }
    }
}
