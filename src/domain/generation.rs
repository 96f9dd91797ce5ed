//! Generated texts with their provenance: which weights, which prompt, which seed, which tokens.

use serde::{Deserialize, Serialize};

use super::{
    ids::{CheckpointId, GenerationId},
    text_enum::text_enum,
};

text_enum!(
    /// The part that the language model played (algorithms: NLAC §4).
    Role {
        /// Acts in the environment.
        Policy = "policy",
        /// Writes what will happen after (state, action).
        Successor = "successor",
        /// Joins what came next with the prediction from there on (the language Bellman backup).
        Bellman = "bellman",
        /// Judges an action from predicted futures.
        Evaluator = "evaluator",
        /// Rewrites an action by its critique.
        Refiner = "refiner",
        /// Takes hindsight out of the reasoning of a target.
        Corrector = "corrector",
        /// Says the value of an action as a number (the scalar critic).
        Value = "value",
    }
);

text_enum!(
    /// Which weights played it.
    Weights {
        /// The adapter that is being trained, as last published.
        Online = "online",
        /// Its lagging average.
        Target = "target",
        /// The base model, no adapter.
        Base = "base",
        /// Another model, which is never trained: the spec's `model.frozen`.
        Frozen = "frozen",
    }
);

text_enum!(
    /// Why a generation ended.
    FinishReason {
        /// End of text or a stop sequence.
        Stop = "stop",
        /// The token limit.
        Length = "length",
    }
);

/// How a text was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Most tokens to write.
    pub max_tokens: u32,
    /// The request's own seed; none where the engine draws one itself, and then does not tell it.
    pub seed: Option<i64>,
}

impl Sampling {
    /// Of the samples of one prompt, the one with this number: engines add it to the seed.
    #[must_use]
    pub fn of_sample(self, number: u32) -> Self {
        Self { seed: self.seed.map(|seed| seed + i64::from(number)), ..self }
    }
}

/// One text that a model wrote, with everything needed to say what made it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Generation {
    /// Its id.
    pub id: GenerationId,
    /// The part played.
    pub role: Role,
    /// The weights asked for.
    pub weights: Weights,
    /// The checkpoint behind them; null for the base model and a frozen one.
    pub checkpoint_id: Option<CheckpointId>,
    /// The model name that the engine echoed (equal to the one asked for, or the call fails; a chat endpoint
    /// may answer by the full name of what was asked for).
    pub model: String,
    /// The engine that answered.
    pub engine: String,
    /// Content hash of the prompt template.
    pub prompt_hash: String,
    /// How it was sampled.
    pub sampling: Sampling,
    /// The model took no temperature: it sampled by its own, and the row holds none.
    pub own_temperature: bool,
    /// Tokens in the prompt, as the engine counted them.
    pub prompt_tokens: i32,
    /// The tokens written, end-of-text included where the engine returns it. Of a frozen model's text, the
    /// tokens that the job's own model would write it in.
    pub token_ids: Vec<i32>,
    /// Log-probability of each token under the weights, natural log; only for the policy's actions and the evaluator's
    /// verdicts.
    pub logprobs: Option<Vec<f32>>,
    /// Log-probability of the action among the admissible ones, natural log, at temperature 1; none where the text was
    /// written freely. It is stored with the step.
    #[serde(skip)]
    pub choice_logprob: Option<f64>,
    /// The text, without special tokens.
    pub text: String,
    /// Why it ended.
    pub finish_reason: FinishReason,
}
