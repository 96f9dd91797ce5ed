//! Bodies of the Tinker operations: here the data that is trained on and what comes of it.

mod answers;
mod requests;

use serde::{Deserialize, Serialize};

pub use answers::{
    Checkpoint, CheckpointList, ClientConfig, Created, CreatedModel, Cursor, Health, LoraAnswer,
    LoraAsked, ModelData, ModelInfo, Queued, Saved, ServerCapabilities, Session, Stepped,
    SupportedModel, Telemetry, TrainingRun, TrainingRuns, Typed, UnloadQueued, Unloaded,
    WeightsInfo,
};
pub use requests::{
    AdamFields, CreateModel, Heartbeat, Load, LoraSettings, ModelOnly, OptimStep, Retrieve, Save,
    WeightsQuery,
};

use crate::train::{Clip, Example, Loss, Sampled};

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct Forward {
    pub model_id: String,
    #[serde(default)]
    pub seq_id: Option<u64>,
    #[serde(alias = "forward_input")]
    pub forward_backward_input: ForwardInput,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct ForwardInput {
    pub data: Vec<Datum>,
    pub loss_fn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_fn_config: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct Datum {
    pub model_input: ModelInput,
    pub loss_fn_inputs: LossInputs,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct ModelInput {
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Chunk {
    EncodedText { tokens: Vec<u32> },
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct LossInputs {
    pub target_tokens: Tensor<u32>,
    #[serde(default)]
    pub weights: Option<Tensor<f32>>,
    /// For losses that look back to the policy that sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Tensor<f32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advantages: Option<Tensor<f32>>,
}

/// The losses that this trainer has.
pub const LOSSES: [&str; 3] = ["cross_entropy", "importance_sampling", "ppo"];

#[derive(Clone, Copy)]
enum LossFn {
    CrossEntropy,
    ImportanceSampling,
    Ppo(Clip),
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct Tensor<T> {
    pub data: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
}

impl<T> Tensor<T> {
    fn float32(data: Vec<T>) -> Self {
        let shape = Some(vec![data.len()]);
        Self { data, dtype: Some("float32".into()), shape }
    }
}

impl ForwardInput {
    /// Refuses a loss that this trainer does not have, or settings that it does not take.
    pub fn check(&self) -> Result<(), String> {
        self.loss().map(|_| ())
    }

    fn loss(&self) -> Result<LossFn, String> {
        let name = self.loss_fn.as_str();
        let settings = self.loss_fn_config.as_ref().and_then(serde_json::Value::as_object);
        let keys: Vec<_> = settings.into_iter().flat_map(|s| s.keys()).collect();
        let loss = match name {
            "cross_entropy" => LossFn::CrossEntropy,
            "importance_sampling" => LossFn::ImportanceSampling,
            "ppo" => return self.clip().map(LossFn::Ppo),
            _ => {
                return Err(format!(
                    "loss_fn {name:?} is not supported; Input should be one of {LOSSES:?}"
                ));
            }
        };
        if keys.is_empty() {
            return Ok(loss);
        }
        Err(format!("loss_fn='{name}' does not accept loss_fn_config keys. Received: {keys:?}."))
    }

    fn clip(&self) -> Result<Clip, String> {
        let mut clip = Clip::default();
        let settings = self.loss_fn_config.as_ref().and_then(serde_json::Value::as_object);
        for (key, value) in settings.into_iter().flatten() {
            let bound = value.as_f64().filter(|bound| bound.is_finite() && *bound >= 0.0);
            let Some(bound) = bound else {
                return Err(format!("loss_fn_config {key}: a ratio of at least 0 is needed"));
            };
            match key.as_str() {
                "clip_low_threshold" => clip.low = bound as f32,
                "clip_high_threshold" => clip.high = bound as f32,
                _ => {
                    return Err(format!(
                        "loss_fn='ppo' does not accept loss_fn_config key {key:?}; it accepts \
                         clip_low_threshold and clip_high_threshold"
                    ));
                }
            }
        }
        if clip.low > clip.high {
            return Err("clip_low_threshold is above clip_high_threshold".into());
        }
        Ok(clip)
    }

    /// The examples, checked against a model's limits.
    pub fn examples(&self, vocab_size: usize, longest: usize) -> Result<Vec<Example>, String> {
        let loss = self.loss()?;
        let read = |(i, datum): (usize, &Datum)| {
            let example = datum.example(i, vocab_size, longest)?;
            Ok(Example { loss: datum.loss(i, loss)?, ..example })
        };
        self.data.iter().enumerate().map(read).collect()
    }
}

impl Datum {
    fn example(&self, index: usize, vocab_size: usize, longest: usize) -> Result<Example, String> {
        let input: Vec<u32> = self
            .model_input
            .chunks
            .iter()
            .flat_map(|Chunk::EncodedText { tokens }| tokens.iter().copied())
            .collect();
        let targets = self.loss_fn_inputs.target_tokens.data.clone();
        let weights = match &self.loss_fn_inputs.weights {
            Some(weights) => weights.data.clone(),
            None => vec![1.0; targets.len()],
        };
        let lengths = (input.len(), targets.len(), weights.len());
        if lengths.0 == 0 || lengths.0 != lengths.1 || lengths.0 != lengths.2 {
            return Err(format!(
                "datum {index}: model_input, target_tokens and weights must be of one length and not \
                 empty, but have {}, {} and {}",
                lengths.0, lengths.1, lengths.2
            ));
        }
        if lengths.0 > longest {
            return Err(format!("datum {index}: {} tokens are more than {longest}", lengths.0));
        }
        if let Some(odd) = input.iter().chain(&targets).find(|t| **t as usize >= vocab_size) {
            return Err(format!("datum {index}: token {odd} is out of vocabulary"));
        }
        if weights.iter().any(|w| !w.is_finite()) {
            return Err(format!("datum {index}: a weight is not finite"));
        }
        Ok(Example::said(input, targets, weights))
    }

    fn loss(&self, index: usize, loss: LossFn) -> Result<Loss, String> {
        Ok(match loss {
            LossFn::CrossEntropy => Loss::CrossEntropy,
            LossFn::ImportanceSampling => Loss::ImportanceSampling(self.sampled(index)?),
            LossFn::Ppo(clip) => Loss::Ppo(self.sampled(index)?, clip),
        })
    }

    fn sampled(&self, index: usize) -> Result<Sampled, String> {
        let inputs = &self.loss_fn_inputs;
        let length = inputs.target_tokens.data.len();
        let read = |name: &str, tensor: &Option<Tensor<f32>>| {
            let data = tensor.as_ref().map(|tensor| tensor.data.clone()).unwrap_or_default();
            if data.len() != length || data.iter().any(|value| !value.is_finite()) {
                return Err(format!(
                    "datum {index}: this loss needs {length} finite {name}, one per target token"
                ));
            }
            Ok(data)
        };
        let logprobs = read("logprobs", &inputs.logprobs)?;
        Ok(Sampled { logprobs, advantages: read("advantages", &inputs.advantages)? })
    }
}

#[derive(Debug, Serialize)]
pub struct ForwardOutput {
    pub loss_fn_output_type: &'static str,
    pub loss_fn_outputs: Vec<LossOutput>,
    pub metrics: ForwardMetrics,
}

#[derive(Debug, Serialize)]
pub struct ForwardMetrics {
    /// Summed over all tokens of all datums.
    #[serde(rename = "loss:sum")]
    pub loss_sum: f64,
}

#[derive(Debug, Serialize)]
pub struct LossOutput {
    pub logprobs: Tensor<f32>,
    pub elementwise_loss: Tensor<f32>,
}

impl ForwardOutput {
    pub fn new(examples: &[Example], logprobs: Vec<Vec<f32>>) -> Self {
        let mut total = 0.0;
        let loss_fn_outputs = examples
            .iter()
            .zip(logprobs)
            .map(|(example, logprobs)| {
                let loss: Vec<f32> =
                    logprobs.iter().enumerate().map(|(i, l)| example.loss_at(i, *l)).collect();
                total += loss.iter().map(|l| f64::from(*l)).sum::<f64>();
                LossOutput {
                    logprobs: Tensor::float32(logprobs),
                    elementwise_loss: Tensor::float32(loss),
                }
            })
            .collect();
        let metrics = ForwardMetrics { loss_sum: total };
        Self { loss_fn_output_type: "scalar", loss_fn_outputs, metrics }
    }
}
