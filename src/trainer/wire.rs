//! Bodies of the Tinker operations, in JSON as SkyRL 0.3 speaks them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Adam, Datum};

#[derive(Serialize)]
pub(super) struct ForwardBackward<'a> {
    pub model_id: &'a str,
    pub seq_id: u64,
    pub forward_backward_input: Input,
}

#[derive(Serialize)]
pub(super) struct Forward<'a> {
    pub model_id: &'a str,
    pub seq_id: u64,
    pub forward_input: Input,
}

#[derive(Serialize)]
pub(super) struct Input {
    pub data: Vec<WireDatum>,
    pub loss_fn: &'static str,
}

#[derive(Serialize)]
pub(super) struct WireDatum {
    pub model_input: ModelInput,
    pub loss_fn_inputs: LossInputs,
}

#[derive(Serialize)]
pub(super) struct ModelInput {
    pub chunks: [Chunk; 1],
}

#[derive(Serialize)]
pub(super) struct Chunk {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub tokens: Vec<u32>,
}

#[derive(Serialize)]
pub(super) struct LossInputs {
    pub target_tokens: Tensor<u32>,
    pub weights: Tensor<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Tensor<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advantages: Option<Tensor<f32>>,
}

#[derive(Serialize)]
pub(super) struct Tensor<T> {
    pub data: Vec<T>,
    pub dtype: &'static str,
    pub shape: [usize; 1],
}

impl<T> Tensor<T> {
    const fn new(data: Vec<T>, dtype: &'static str, length: usize) -> Self {
        Self { data, dtype, shape: [length] }
    }
}

impl WireDatum {
    /// Cross entropy by the datum's weight.
    pub fn weighed(datum: &Datum) -> Self {
        Self::new(datum, datum.weight)
    }

    /// The same gradient on a trainer that averages: importance sampling from the policy as it is, so that
    /// every ratio is 1, with the weight as advantage. `logprobs` are all positions' own; `sequences`
    /// is how many share the step.
    pub fn advantaged(datum: &Datum, logprobs: Vec<f32>, sequences: usize) -> Self {
        let mut wire = Self::new(datum, 1.0);
        let length = wire.loss_fn_inputs.weights.data.len();
        let undone = datum.weight * datum.completion.len() as f32 * sequences as f32;
        let inputs = &mut wire.loss_fn_inputs;
        inputs.advantages = Some(Tensor::new(vec![undone; length], "float32", length));
        inputs.logprobs = Some(Tensor::new(logprobs, "float32", length));
        wire
    }

    /// Position i of the input predicts target i: the input is all but the last token, the targets all
    /// but the first.
    fn new(datum: &Datum, weight: f32) -> Self {
        let tokens: Vec<u32> = datum.prompt.iter().chain(&datum.completion).copied().collect();
        let length = tokens.len().saturating_sub(1);
        let masked = datum.prompt.len().saturating_sub(1);
        let weights = (0..length).map(|i| if i < masked { 0.0 } else { weight }).collect();
        Self {
            model_input: ModelInput {
                chunks: [Chunk { kind: "encoded_text", tokens: tokens[..length].to_vec() }],
            },
            loss_fn_inputs: LossInputs {
                target_tokens: Tensor::new(tokens[1..].to_vec(), "int64", length),
                weights: Tensor::new(weights, "float32", length),
                logprobs: None,
                advantages: None,
            },
        }
    }
}

#[derive(Serialize)]
pub(super) struct Optim<'a> {
    pub model_id: &'a str,
    pub seq_id: u64,
    pub adam_params: AdamParams,
}

#[derive(Serialize)]
pub(super) struct AdamParams {
    learning_rate: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: f32,
    grad_clip_norm: f32,
}

impl From<&Adam> for AdamParams {
    fn from(adam: &Adam) -> Self {
        Self {
            learning_rate: adam.learning_rate,
            beta1: adam.beta1,
            beta2: adam.beta2,
            eps: adam.epsilon,
            weight_decay: adam.weight_decay,
            grad_clip_norm: adam.grad_clip_norm,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Submitted {
    pub request_id: String,
    #[serde(default)]
    pub model_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Session {
    pub session_id: String,
}

#[derive(Deserialize)]
pub(super) struct Capabilities {
    pub supported_models: Vec<SupportedModel>,
}

#[derive(Deserialize)]
pub(super) struct SupportedModel {
    pub model_name: String,
}

#[derive(Deserialize)]
pub(super) struct ForwardResult {
    pub loss_fn_outputs: Vec<LossOutput>,
}

#[derive(Deserialize)]
pub(super) struct LossOutput {
    pub logprobs: Floats,
}

#[derive(Deserialize)]
pub(super) struct Floats {
    pub data: Vec<f32>,
}

#[derive(Deserialize)]
pub(super) struct OptimResult {
    #[serde(default)]
    pub metrics: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Deserialize)]
pub(super) struct Saved {
    pub path: String,
}

/// What a poll answers with a success.
pub(super) enum Polled {
    /// The operation's result.
    Result(Value),
    /// It is still to be done.
    TryAgain,
    /// It failed; whether because of what was asked, and not of the server.
    Failed { reason: String, of_request: bool },
}

impl Polled {
    /// Tells them apart: `{"type": "try_again"}`, `{"error": …, "category": "user" | "server" | "unknown"}`, or the
    /// result.
    pub fn of(answer: Value) -> Self {
        if answer["type"] == "try_again" {
            return Self::TryAgain;
        }
        match &answer["error"] {
            Value::Null => Self::Result(answer),
            error => Self::Failed {
                reason: error.as_str().map_or_else(|| error.to_string(), ToOwned::to_owned),
                of_request: answer["category"] == "user",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Datum, WireDatum};

    fn data() -> Vec<Datum> {
        [(4, 3, 0.05), (9, 12, 0.02), (1, 1, 0.3)]
            .map(|(prompt, completion, weight)| Datum {
                prompt: (0..prompt).collect(),
                completion: (0..completion).collect(),
                weight,
            })
            .to_vec()
    }

    /// What stands before the gradient of each position's log-probability.
    #[test]
    fn a_mean_over_sequences_gives_every_token_the_weight_that_a_sum_gives_it() {
        let data = data();
        for datum in &data {
            let summed = WireDatum::weighed(datum).loss_fn_inputs;
            let positions = summed.weights.data.len();
            assert_eq!(positions, datum.prompt.len() + datum.completion.len() - 1);
            let learnt = summed.weights.data.iter().filter(|w| **w > 0.0).count();
            assert_eq!(learnt, datum.completion.len());

            // SkyRL's JAX backend: mean over sequences of sum(w · A · ratio) / sum(w), here with ratio 1.
            let sent = WireDatum::advantaged(datum, vec![-1.5; positions], data.len());
            let inputs = sent.loss_fn_inputs;
            assert_eq!(inputs.logprobs.map(|l| l.data), Some(vec![-1.5; positions]));
            let total: f32 = inputs.weights.data.iter().sum();
            let advantages = inputs.advantages.map(|a| a.data).unwrap_or_default();
            assert_eq!(advantages.len(), positions);
            let averaged = inputs.weights.data.iter().zip(advantages);
            let averaged = averaged.map(|(w, a)| w * a / total / data.len() as f32);
            for (sum, mean) in summed.weights.data.iter().zip(averaged) {
                assert!((sum - mean).abs() < 1e-6, "{sum} and {mean}");
            }
        }
    }
}
