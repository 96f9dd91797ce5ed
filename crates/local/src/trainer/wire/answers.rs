//! What the trainer answers: at once, and as results of futures.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Health {
    pub status: &'static str,
}

#[derive(Debug, Serialize)]
pub struct ClientConfig {
    pub pjwt_auth_enabled: bool,
    /// Requests run in the order of arrival, so the parts of a batch must be sent in their order.
    pub parallel_fwdbwd_chunks: bool,
    pub proto_compress_fwdbwd: bool,
}

#[derive(Debug, Serialize)]
pub struct Telemetry {
    pub status: &'static str,
}

#[derive(Debug, Serialize)]
pub struct ServerCapabilities {
    pub supported_models: [SupportedModel; 1],
    pub supported_loss_fns: [&'static str; 8],
    /// Critics may have hidden layers.
    pub value_head: bool,
    /// One model may follow another.
    pub polyak: bool,
}

#[derive(Debug, Serialize)]
pub struct SupportedModel {
    pub model_name: String,
}

#[derive(Debug, Serialize)]
pub struct Session {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub session_id: String,
    pub info_message: Option<String>,
    pub warning_message: Option<String>,
    pub error_message: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Typed {
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A request that is queued.
#[derive(Debug, Serialize)]
pub struct Queued {
    pub future_id: String,
    pub status: &'static str,
    pub request_id: String,
    pub model_id: String,
}

#[derive(Debug, Serialize)]
pub struct CreatedModel {
    pub model_id: String,
    pub base_model: String,
    pub lora_config: LoraAsked,
    pub status: &'static str,
    pub request_id: String,
}

#[derive(Debug, Serialize)]
pub struct LoraAsked {
    pub rank: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct UnloadQueued {
    pub request_id: String,
    pub model_id: String,
}

#[derive(Debug, Serialize)]
pub struct ModelInfo {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub model_id: String,
    pub status: &'static str,
    pub model_data: ModelData,
}

#[derive(Debug, Serialize)]
pub struct ModelData {
    pub base_model: String,
    pub lora_config: LoraAsked,
    pub model_name: String,
}

#[derive(Debug, Serialize)]
pub struct WeightsInfo {
    pub base_model: String,
    pub is_lora: bool,
    pub lora_rank: Option<usize>,
}

#[derive(Debug, Serialize)]
pub struct TrainingRuns {
    pub training_runs: Vec<TrainingRun>,
    pub cursor: Cursor,
}

#[derive(Debug, Serialize)]
pub struct Cursor {
    pub offset: usize,
    pub limit: usize,
    pub total_count: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct TrainingRun {
    pub training_run_id: String,
    pub base_model: String,
    pub model_owner: &'static str,
    pub is_lora: bool,
    pub corrupted: bool,
    pub lora_rank: Option<usize>,
    pub last_request_time: String,
    pub last_checkpoint: Option<()>,
    pub last_sampler_checkpoint: Option<()>,
    pub user_metadata: Option<()>,
}

#[derive(Debug, Serialize)]
pub struct CheckpointList {
    pub checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Serialize)]
pub struct Checkpoint {
    pub checkpoint_id: String,
    pub checkpoint_type: &'static str,
    pub time: String,
    pub tinker_path: String,
}

/// Result of `create_model`.
#[derive(Debug, Serialize)]
pub struct Created<'a> {
    pub model_id: &'a str,
    pub base_model: &'a str,
    pub lora_config: LoraAnswer,
}

#[derive(Debug, Serialize)]
pub struct LoraAnswer {
    pub rank: usize,
    pub alpha: f32,
    pub seed: u64,
}

/// Result of `unload_model`.
#[derive(Debug, Serialize)]
pub struct Unloaded<'a> {
    pub model_id: &'a str,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// Result of `polyak`.
#[derive(Debug, Serialize)]
pub struct Followed<'a> {
    pub model_id: &'a str,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// Result of `optim_step`.
#[derive(Debug, Serialize)]
pub struct Stepped {
    pub metrics: StepMetrics,
}

/// Under plain names, and those that SkyRL knows also under SkyRL's.
#[derive(Debug, Serialize)]
pub struct StepMetrics {
    pub grad_norm: f32,
    pub learning_rate: f32,
    pub steps: u64,
    #[serde(rename = "skyrl.ai/grad_norm")]
    pub skyrl_grad_norm: f32,
    #[serde(rename = "skyrl.ai/learning_rate")]
    pub skyrl_learning_rate: f32,
}

impl Stepped {
    pub const fn new(grad_norm: f32, learning_rate: f32, steps: u64) -> Self {
        let metrics = StepMetrics {
            grad_norm,
            learning_rate,
            steps,
            skyrl_grad_norm: grad_norm,
            skyrl_learning_rate: learning_rate,
        };
        Self { metrics }
    }
}

/// Result of saving and loading.
#[derive(Debug, Serialize)]
pub struct Saved {
    pub path: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Null where the client expects the field, absent where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_session_id: Option<Option<String>>,
}

impl Saved {
    pub const fn new(path: String, kind: &'static str) -> Self {
        Self { path, kind, sampling_session_id: None }
    }

    pub const fn for_sampler(path: String) -> Self {
        Self { path, kind: "save_weights_for_sampler", sampling_session_id: Some(None) }
    }
}
