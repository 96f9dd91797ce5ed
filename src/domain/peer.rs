//! Registered engines and trainers, and what they were found to be able to do.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    environment::{EnvironmentRecord, FoundEnvironment},
    peer_key::PeerKeyError,
    text_enum::text_enum,
};

text_enum!(
    /// Dialects of engines.
    EngineKind {
        /// vLLM's protocol with run-time LoRA, which nlac's own engine speaks too.
        Vllm = "vllm",
        /// SGLang's native protocol with run-time LoRA.
        Sglang = "sglang",
        /// Hugging Face's Text Generation Inference. It reads no token ids and loads no adapters at run time,
        /// so it plays frozen parts only.
        Tgi = "tgi",
        /// Any chat endpoint of OpenAI's form, hosted or not, for frozen parts.
        Openai = "openai",
    }
);

impl EngineKind {
    /// Whether adapters can be served there, token for token: what is trained must act on such an engine.
    #[must_use]
    pub const fn serves_adapters(self) -> bool {
        matches!(self, Self::Vllm | Self::Sglang)
    }
}

text_enum!(
    /// Protocols of trainers.
    TrainerKind {
        /// The Tinker API, as hosted, as nlac's own trainers and as SkyRL's FSDP and Megatron backends speak
        /// it: losses are summed over tokens.
        Tinker = "tinker",
        /// SkyRL's JAX backend: the same operations, but losses are averaged per sequence, and gradients
        /// are not clipped.
        SkyrlJax = "skyrl_jax",
    }
);

/// A registered engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::FromRow, ToSchema)]
pub struct EngineRecord {
    /// The name that specs use.
    pub name: String,
    /// Its dialect.
    pub kind: EngineKind,
    /// `http://host:port` of every replica.
    pub urls: Vec<String>,
    /// Replicas that get nothing new: what they are doing ends, then they may be stopped.
    pub draining: Vec<String>,
    /// The base model's name on the wire.
    pub base_model: String,
    /// The model's name in specs, where engine and trainer call the same model differently.
    pub model: String,
    /// Directory with the base model's tokenizer and chat template, as this service sees it; frozen engines
    /// need none.
    pub model_dir: Option<String>,
    /// Directory of the adapters as the engine sees it, where that is not this service's own path.
    pub adapter_dir: Option<String>,
    /// Whether requests carry a seed.
    pub seeds: bool,
    /// The environment variable of this service that holds the engine's API key.
    pub api_key_env: Option<String>,
    /// Milliseconds after which a request without an answer is asked of another replica as well.
    pub hedge_ms: Option<i32>,
}

impl EngineRecord {
    /// An engine with every option at its default.
    #[must_use]
    pub fn new(name: &str, kind: EngineKind, urls: &[String], base_model: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            urls: urls.to_vec(),
            draining: Vec::new(),
            base_model: base_model.to_owned(),
            model: base_model.to_owned(),
            model_dir: None,
            adapter_dir: None,
            seeds: true,
            api_key_env: None,
            hedge_ms: None,
        }
    }
}

/// A registered trainer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::FromRow, ToSchema)]
pub struct TrainerRecord {
    /// The name that specs use.
    pub name: String,
    /// Its protocol.
    pub kind: TrainerKind,
    /// `http://host:port`.
    pub url: String,
    /// The base model's name on the wire.
    pub base_model: String,
    /// The model's name in specs, where engine and trainer call the same model differently.
    pub model: String,
    /// The environment variable of this service that holds the trainer's API key.
    pub api_key_env: Option<String>,
}

impl TrainerRecord {
    /// A trainer with every option at its default.
    #[must_use]
    pub fn new(name: &str, kind: TrainerKind, url: &str, base_model: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            url: url.to_owned(),
            base_model: base_model.to_owned(),
            model: base_model.to_owned(),
            api_key_env: None,
        }
    }
}

/// What an engine was found to be able to do; of several replicas, what all can.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineCapabilities {
    /// Its version, as it tells it.
    pub version: String,
    /// Names that it serves: base model and adapters.
    pub models: Vec<String>,
    /// Longest sequence, tokens.
    pub max_model_len: Option<u32>,
    /// Adapters can be loaded while it runs.
    pub runtime_adapters: bool,
    /// The highest rank of an adapter, where it tells.
    pub max_rank: Option<u32>,
    /// Replicas that answered.
    pub replicas: u32,
}

impl EngineCapabilities {
    /// Two replicas together: every name, and what both can do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b).min();
        let mut models = self.models;
        models.extend(other.models);
        models.sort_unstable();
        models.dedup();
        Self {
            version: self.version,
            models,
            max_model_len: least(self.max_model_len, other.max_model_len),
            runtime_adapters: self.runtime_adapters && other.runtime_adapters,
            max_rank: least(self.max_rank, other.max_rank),
            replicas: self.replicas + other.replicas,
        }
    }
}

/// What a trainer was found to be able to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrainerCapabilities {
    /// Base models that it trains.
    pub models: Vec<String>,
    /// Losses that it has, by their names in the Tinker API; null where it does not tell.
    #[serde(default)]
    pub losses: Option<Vec<String>>,
    /// It trains critics whose value head is a multi-layer perceptron.
    #[serde(default)]
    pub value_head: bool,
    /// It moves a model's weights towards those of another (Polyak averaging).
    #[serde(default)]
    pub polyak: bool,
}

/// Finds out what peers can do.
#[async_trait]
pub trait Discover: Send + Sync {
    /// What an engine can do, or why that is not known.
    async fn engine(&self, record: &EngineRecord) -> Result<EngineCapabilities, String>;

    /// What a trainer can do, or why that is not known.
    async fn trainer(&self, record: &TrainerRecord) -> Result<TrainerCapabilities, String>;

    /// What an environment is, or why that is not known.
    async fn environment(&self, record: &EnvironmentRecord) -> Result<FoundEnvironment, String>;

    /// Whether the service has this API key and may send it to these URLs.
    ///
    /// # Errors
    /// Why not.
    fn may_send_key(&self, variable: &str, urls: &[String]) -> Result<(), PeerKeyError>;
}
