//! The job spec: what a user asks for. Unknown fields are refused, every number has a bound, and every
//! default is what the demo runs with.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::generation::Weights;

/// A training job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// A name for people: lower-case letters, digits and dashes. Part of the adapters' names.
    #[garde(length(min = 1, max = 40), pattern("^[a-z0-9][a-z0-9-]*$"))]
    #[schema(
        min_length = 1,
        max_length = 40,
        pattern = "^[a-z0-9][a-z0-9-]*$",
        example = "help-desk"
    )]
    pub name: String,
    /// Every random choice of the job follows from it.
    #[serde(default)]
    #[garde(range(max = 9_007_199_254_740_991))]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub seed: u64,
    /// Where the agent acts.
    #[garde(dive)]
    pub environment: EnvironmentSpec,
    /// Which model, where it is served and where it is trained.
    #[garde(dive)]
    pub model: ModelSpec,
    /// What is learnt from what.
    #[garde(dive)]
    pub algorithm: AlgorithmSpec,
    /// How much is collected per iteration, and how.
    #[serde(default)]
    #[garde(dive)]
    pub rollout: RolloutSpec,
    /// The adapter's shape.
    #[serde(default)]
    #[garde(dive)]
    pub lora: LoraSpec,
    /// How the trainer steps.
    #[serde(default)]
    #[garde(dive)]
    pub optimizer: OptimizerSpec,
    /// When and how success is measured.
    #[serde(default)]
    #[garde(dive)]
    pub evaluation: EvaluationSpec,
    /// When the job ends.
    #[serde(default)]
    #[garde(dive)]
    pub budget: BudgetSpec,
}

/// Where the agent acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EnvironmentSpec {
    /// A form that must be complete before the request is carried out; nobody says what it needs.
    HelpDesk {},
    /// Guess an object by yes/no questions; a rule-based oracle answers from an object table.
    TwentyQuestions {
        /// Questions before the game is lost.
        #[serde(default = "default_questions")]
        #[garde(range(min = 1, max = 100))]
        #[schema(minimum = 1, maximum = 100, default = 20)]
        max_questions: u32,
    },
}

/// Which model, where it is served and where it is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The base model's name, as engine and trainer know it.
    #[garde(length(min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200, example = "help-desk-base")]
    pub base: String,
    /// A registered engine.
    #[serde(default = "default_local")]
    #[garde(length(min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, default = "local")]
    pub engine: String,
    /// A registered trainer.
    #[serde(default = "default_local")]
    #[garde(length(min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, default = "local")]
    pub trainer: String,
    /// The prompt set (a folder under `prompts/`).
    #[serde(default = "default_prompts")]
    #[garde(length(min = 1, max = 100), pattern("^[a-z0-9_]+$"))]
    #[schema(min_length = 1, max_length = 100, pattern = "^[a-z0-9_]+$", default = "standard")]
    pub prompts: String,
}

/// What is learnt from what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AlgorithmSpec {
    /// Natural Language Actor-Critic.
    Nlac(#[garde(dive)] NlacSpec),
    /// Rejection fine-tuning: imitate one's own successes.
    RejectionFineTuning(#[garde(dive)] RejectionSpec),
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
    /// τ of the target: target ← (1 − τ) target + τ online, at each publication. 1 copies.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub target_rate: f32,
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
    #[garde(skip)]
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

/// A part of the method switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ablation {
    /// The whole method.
    None,
    /// The successor model is never trained.
    UntrainedCritic,
    /// Each transition is refined by another one's critique.
    ShuffledCritiques,
}

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

/// Which transitions are replayed (algorithms: NLAC §1.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct ReplaySpec {
    /// Transitions annotated per iteration.
    #[garde(range(min = 1, max = 1_000_000))]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub batch: u32,
    /// Transitions kept; the oldest leave first.
    #[garde(range(min = 1, max = 100_000_000))]
    #[schema(minimum = 1, maximum = 100_000_000)]
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
}

/// Settings of rejection fine-tuning (algorithms: §3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct RejectionSpec {
    /// Newest successful episodes that are imitated.
    #[garde(range(min = 1, max = 1_000_000))]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub keep_episodes: u32,
    /// Most steps of them per iteration.
    #[garde(range(min = 1, max = 1_000_000))]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub batch: u32,
}

/// How much is collected per iteration, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutSpec {
    /// Episodes per iteration.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub episodes: u32,
    /// Sampling temperature of the policy.
    #[garde(range(min = 0.0, max = 2.0))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: f32,
    /// Most tokens of one action.
    #[garde(range(min = 1, max = 32_768))]
    #[schema(minimum = 1, maximum = 32_768)]
    pub max_tokens: u32,
}

/// The adapter's shape.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct LoraSpec {
    /// Rank. The scale is alpha / rank; trainers of the Tinker family fix alpha at 32.
    #[garde(range(min = 1, max = 512))]
    #[schema(minimum = 1, maximum = 512)]
    pub rank: u32,
}

/// How the trainer steps: Adam on the sum of both losses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSpec {
    /// Peak learning rate.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub learning_rate: f32,
    /// Share of the peak that is left at the end of the cosine decay; 1 keeps it constant.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub final_share: f32,
    /// Iterations at the peak before the decay begins.
    #[garde(range(max = 100_000))]
    #[schema(maximum = 100_000)]
    pub hold_iterations: u32,
    /// Adam's first decay.
    #[garde(range(min = 0.0, max = 0.9999))]
    #[schema(minimum = 0.0, maximum = 0.9999)]
    pub beta1: f32,
    /// Adam's second decay.
    #[garde(range(min = 0.0, max = 0.99999))]
    #[schema(minimum = 0.0, maximum = 0.99999)]
    pub beta2: f32,
    /// Adam's ε.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub epsilon: f32,
    /// Largest gradient norm; 0 does not clip.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schema(minimum = 0.0, maximum = 1000.0)]
    pub grad_clip_norm: f32,
    /// Examples per optimizer step.
    #[garde(range(min = 1, max = 4096))]
    #[schema(minimum = 1, maximum = 4096)]
    pub minibatch: u32,
    /// Passes over an iteration's examples.
    #[garde(range(min = 1, max = 64))]
    #[schema(minimum = 1, maximum = 64)]
    pub epochs: u32,
}

/// When and how success is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationSpec {
    /// Iterations between evaluations; the first and the last round are always evaluated.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub every: u32,
    /// Held-out episodes, first and last round.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub episodes: u32,
    /// Held-out episodes in between.
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

/// When the job ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSpec {
    /// Iterations to run.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub iterations: u32,
}

const fn default_questions() -> u32 {
    20
}

fn default_local() -> String {
    "local".into()
}

fn default_prompts() -> String {
    "standard".into()
}

impl Default for NlacSpec {
    fn default() -> Self {
        Self {
            futures: 1,
            rounds: 1,
            on_yes: OnYes::DistillOriginal,
            warmup_iterations: 2,
            critic_weight: 1.0,
            policy_weight: 1.0,
            target_rate: 0.9,
            weights: RoleWeights::default(),
            sampling: RoleSampling::default(),
            replay: ReplaySpec::default(),
            ablation: Ablation::None,
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
        }
    }
}

impl Default for ReplaySpec {
    fn default() -> Self {
        Self {
            batch: 256,
            capacity: 100_000,
            priority_exponent: 0.6,
            uniform_share: 0.1,
            terminal_share: 0.45,
        }
    }
}

impl Default for RejectionSpec {
    fn default() -> Self {
        Self { keep_episodes: 200, batch: 256 }
    }
}

impl Default for RolloutSpec {
    fn default() -> Self {
        Self { episodes: 64, temperature: 1.0, max_tokens: 256 }
    }
}

impl Default for LoraSpec {
    fn default() -> Self {
        Self { rank: 16 }
    }
}

impl Default for OptimizerSpec {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            final_share: 0.15,
            hold_iterations: 4,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-8,
            grad_clip_norm: 1.0,
            minibatch: 32,
            epochs: 4,
        }
    }
}

impl Default for EvaluationSpec {
    fn default() -> Self {
        Self {
            every: 5,
            episodes: 300,
            interim_episodes: 100,
            temperature: 0.5,
            also: vec![0.0, 1.0],
        }
    }
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self { iterations: 30 }
    }
}
