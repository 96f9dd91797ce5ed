//! Bodies of the Tinker operations.

use serde::{Deserialize, Serialize};

use crate::train::Example;

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct CreateModel {
    pub session_id: String,
    pub base_model: String,
    pub lora_config: LoraSettings,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct LoraSettings {
    pub rank: usize,
    #[serde(default)]
    pub seed: Option<u64>,
}

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
    #[serde(default)]
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
    /// The examples, checked against a model's limits.
    pub fn examples(&self, vocab_size: usize, longest: usize) -> Result<Vec<Example>, String> {
        if self.loss_fn != "cross_entropy" {
            return Err(format!(
                "loss_fn {:?} is not supported by this trainer; it has cross_entropy",
                self.loss_fn
            ));
        }
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
    pub metrics: serde_json::Map<String, serde_json::Value>,
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
        let metrics = [("loss:sum".to_owned(), total.into())].into_iter().collect();
        Self { loss_fn_output_type: "scalar", loss_fn_outputs, metrics }
    }
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct OptimStep {
    pub model_id: String,
    #[serde(default)]
    pub seq_id: Option<u64>,
    pub adam_params: AdamFields,
}

#[derive(Debug, Deserialize, Serialize, Clone)]
pub struct AdamFields {
    pub learning_rate: f32,
    #[serde(default = "beta1")]
    pub beta1: f32,
    #[serde(default = "beta2")]
    pub beta2: f32,
    #[serde(default = "eps")]
    pub eps: f32,
    #[serde(default)]
    pub weight_decay: f32,
    #[serde(default)]
    pub grad_clip_norm: f32,
}

const fn beta1() -> f32 {
    0.9
}

const fn beta2() -> f32 {
    0.95
}

const fn eps() -> f32 {
    1e-12
}

#[derive(Debug, Deserialize)]
pub struct Save {
    pub model_id: String,
    pub path: String,
}

#[derive(Debug, Deserialize)]
pub struct Load {
    pub model_id: String,
    pub path: String,
    #[serde(default)]
    pub optimizer: bool,
}

#[derive(Debug, Deserialize)]
pub struct ModelOnly {
    pub model_id: String,
}

#[derive(Debug, Deserialize)]
pub struct Retrieve {
    pub request_id: String,
}

#[derive(Debug, Deserialize)]
pub struct Heartbeat {
    pub session_id: String,
}
