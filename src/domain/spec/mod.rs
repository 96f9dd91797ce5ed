//! The job spec: what a user asks for. Unknown fields are refused, every number has a bound, and every
//! default is what the demo runs with.

mod algorithm;
mod baselines;
mod environment;
mod evaluated;
mod evaluation;
mod glam;
mod guards;
mod nlrl;
mod on_policy;
mod replay;
mod roles;

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ids::CheckpointId;

pub use algorithm::{Ablation, AlgorithmSpec, NlacSpec, OnSameAction, OnYes, TargetUpdate};
pub use baselines::{RejectionSpec, ScalarSpec};
pub use environment::{
    AnswerChecker, EnvironmentSpec, GatewaySpec, NamedField, ObjectTable, PlaygroundSize,
    RemoteSpec, ServiceDeskSpec, ServiceTasks, TauBenchSpec, TauForm, TauTasks, TauUser,
};
pub use evaluated::EvaluatedSpec;
pub use evaluation::{EvaluationSource, EvaluationSpec, TaskSplit};
pub use glam::{ChoiceCriticSpec, PpoGlamSpec, SacGlamSpec, TemperatureSpec};
pub use guards::{GuardSpec, GuardsSpec, HealthSpec, RehearsalSpec};
pub use nlrl::{
    MonteCarloSpec, NlrlSampling, NlrlSpec, NlrlWeights, TemporalDifferenceSpec, ValueForm,
};
pub use on_policy::{ClipSpec, CriticSpec, GrpoSpec, PpoSpec};
pub use replay::{HindsightSpec, HindsightStrategy, ReplaySpec};
pub use roles::{RoleSampling, RoleWeights, SamplingSpec};

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
    /// Training algorithm.
    #[garde(dive)]
    pub algorithm: AlgorithmSpec,
    /// Names of datasets: logged episodes to learn from. They are linked when iteration 1 begins.
    #[serde(default)]
    #[garde(length(max = 16), inner(length(min = 1, max = 63)))]
    #[schema(max_items = 16)]
    pub datasets: Vec<String>,
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
    /// How the critic's health is measured.
    #[serde(default)]
    #[garde(dive)]
    pub health: HealthSpec,
    /// What watches the run.
    #[serde(default)]
    #[garde(dive)]
    pub guards: GuardsSpec,
    /// What keeps the model from forgetting the rest.
    #[serde(default)]
    #[garde(dive)]
    pub rehearsal: RehearsalSpec,
    /// What may overlap.
    #[serde(default)]
    #[garde(dive)]
    pub pipeline: PipelineSpec,
    /// When the job ends.
    #[serde(default)]
    #[garde(dive)]
    pub budget: BudgetSpec,
}

/// Which model, where it is served and where it is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The base model's name, as engine and trainer are registered with.
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
    /// A registered engine that plays the parts whose weights are `frozen`: a chat endpoint, its model
    /// never trained.
    #[serde(default)]
    #[garde(inner(length(min = 1, max = 100)))]
    #[schema(min_length = 1, max_length = 100)]
    pub frozen: Option<String>,
    /// The prompt set: one that ships, or your own. The job keeps the prompts that the set has when it is submitted.
    #[serde(default = "default_prompts")]
    #[garde(length(min = 1, max = 63), pattern("^[a-z0-9_-]+$"))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9_-]+$", default = "standard")]
    pub prompts: String,
    /// The checkpoint that training starts from, of the same base model, trainer and rank; an untrained adapter unless
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(skip)]
    pub start_from: Option<CheckpointId>,
    /// How the model writes tool calls, where its environment offers tools.
    #[serde(default)]
    #[garde(skip)]
    #[schema(inline)]
    pub tool_format: ToolFormat,
}

/// How a model family writes tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolFormat {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, repeated: Hermes, Qwen2.5 and Qwen3.
    #[default]
    Hermes,
    /// `{"name": …, "parameters": {…}}`, joined by `;`: Llama 3.
    Llama3,
    /// `[TOOL_CALLS]name{…}`, repeated, or `[TOOL_CALLS][{"name": …, "arguments": {…}}]`: Mistral.
    Mistral,
}

/// How much is collected per iteration, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutSpec {
    /// Episodes per iteration; 0 learns from datasets alone.
    #[garde(range(max = 100_000), custom(whole_groups(&self.group)))]
    #[schema(maximum = 100_000)]
    pub episodes: u32,
    /// Episodes of one group: they have the same task and the same environment seed, and differ by what the policy
    /// samples. Algorithms that compare episodes with their group need at least 2.
    #[garde(range(min = 1, max = 1_024))]
    #[schema(minimum = 1, maximum = 1_024)]
    pub group: u32,
    /// Sampling temperature of the policy.
    #[garde(range(min = 0.0, max = 2.0))]
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: f32,
    /// Most tokens of one action.
    #[garde(range(min = 1, max = 32_768))]
    #[schema(minimum = 1, maximum = 32_768)]
    pub max_tokens: u32,
    /// Steps after which an episode is truncated, unless its task has ended.
    #[garde(range(min = 1, max = 10_000))]
    #[schema(minimum = 1, maximum = 10_000)]
    pub max_steps: u32,
    /// Replies in a row that are no action, after which an episode is truncated, unless its task has ended. No built-in
    /// task lasts longer than the default at its default settings.
    #[garde(range(min = 1, max = 10_000))]
    #[schema(minimum = 1, maximum = 10_000)]
    pub max_unreadable: u32,
    /// Seconds after which an episode is truncated, waiting for a busy engine included.
    #[garde(range(min = 1, max = 86_400))]
    #[schema(minimum = 1, maximum = 86_400)]
    pub max_seconds: u32,
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
    /// What a minibatch's loss is a mean over.
    #[garde(skip)]
    pub loss_mean: LossMean,
}

/// What a minibatch's loss is a mean over. The weights of examples (λ, importance) scale the loss and are no part of the
/// mean. Adam hardly notices a scale that all examples share; clipping and the ratio of the weights do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossMean {
    /// The tokens of all examples: a target of 150 tokens counts ten times as much as an action of 15.
    Tokens,
    /// The examples, each by the mean over its own tokens: a target counts as much as an action.
    Sequences,
}

/// What may overlap.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate,
)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineSpec {
    /// Versions by which the adapters that act may lag behind the one that is learnt from. 0 runs one
    /// phase after the other, and the same seed gives the same result; from 1 on the next iterations
    /// collect and annotate while this one learns. From 2 on what annotates lags by one version less:
    /// its lag is added to each step that an outcome is carried back through an episode.
    #[garde(range(max = 16))]
    #[schema(maximum = 16)]
    pub max_staleness: u32,
}

/// When the job ends: after the iteration in which the first of these is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSpec {
    /// Iterations to run; the learning rate decays over them.
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub iterations: u32,
    /// Optimizer steps. The iteration that reaches them stops there.
    #[garde(inner(range(min = 1)))]
    #[schema(minimum = 1)]
    pub optimizer_steps: Option<u64>,
    /// Environment steps taken to learn from.
    #[garde(inner(range(min = 1)))]
    #[schema(minimum = 1)]
    pub env_steps: Option<u64>,
    /// Tokens generated and trained on, prompts included.
    #[garde(inner(range(min = 1)))]
    #[schema(minimum = 1)]
    pub tokens: Option<u64>,
    /// Seconds since the job started, pauses included.
    #[garde(inner(range(min = 1)))]
    #[schema(minimum = 1)]
    pub wall_seconds: Option<u64>,
}

fn whole_groups(group: &u32) -> impl FnOnce(&u32, &()) -> garde::Result + '_ {
    move |episodes, ()| {
        if episodes.is_multiple_of((*group).max(1)) {
            return Ok(());
        }
        Err(garde::Error::new(format!("must be a multiple of rollout.group, which is {group}")))
    }
}

fn default_local() -> String {
    "local".into()
}

fn default_prompts() -> String {
    "standard".into()
}

impl Default for RolloutSpec {
    fn default() -> Self {
        Self {
            episodes: 64,
            group: 1,
            temperature: 1.0,
            max_tokens: 256,
            max_steps: 200,
            max_unreadable: 30,
            max_seconds: 3_600,
        }
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
            loss_mean: LossMean::Tokens,
        }
    }
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            iterations: 30,
            optimizer_steps: None,
            env_steps: None,
            tokens: None,
            wall_seconds: None,
        }
    }
}
