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

use crate::train::Example;

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
    /// Refuses a loss that this trainer does not have.
    pub fn check(&self) -> Result<(), String> {
        let loss = &self.loss_fn;
        if loss != "cross_entropy" {
            return Err(format!(
                "loss_fn {loss:?} is not supported; Input should be 'cross_entropy'"
            ));
        }
        let settings = self.loss_fn_config.as_ref().and_then(serde_json::Value::as_object);
        let keys: Vec<_> = settings.into_iter().flat_map(|s| s.keys()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        Err(format!(
            "loss_fn='cross_entropy' does not accept loss_fn_config keys. Received: {keys:?}."
        ))
    }

    /// The examples, checked against a model's limits.
    pub fn examples(&self, vocab_size: usize, longest: usize) -> Result<Vec<Example>, String> {
        self.data
            .iter()
            .enumerate()
            .map(|(i, datum)| datum.example(i, vocab_size, longest))
            .collect()
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
        Ok(Example { input, targets, weights })
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
                    logprobs.iter().zip(&example.weights).map(|(l, w)| -l * w).collect();
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
