//! An engine whose words are a function of who is asked what.

use async_trait::async_trait;
use nlac::{
    domain::{
        generation::FinishReason, ids::CheckpointId, message::Message, peer::EngineCapabilities,
    },
    engine::{Adapter, Completion, Engine, EngineError, Request, Tokenized},
    prompt::{Encoder, PromptSet},
    rollout::{Cast, Published},
};

use super::model_dir;

/// What an engine is asked.
pub struct Asked<'a> {
    /// The adapter; none is the base model.
    pub adapter: Option<&'a str>,
    /// The prompt's words, without special tokens.
    pub prompt: &'a str,
    /// The request's seed.
    pub seed: i64,
}

/// Speaks by a function.
pub struct Stub<F> {
    encoder: Encoder,
    say: F,
}

impl<F: Fn(Asked<'_>) -> String + Send + Sync> Stub<F> {
    pub fn new(say: F) -> Self {
        Self { encoder: Encoder::load(&model_dir()).unwrap(), say }
    }
}

impl<F> Stub<F>
where
    Self: Engine,
{
    /// Plays every part, as `online` and `target`.
    pub fn cast<'a>(&'a self, prompts: &'a PromptSet) -> Cast<'a> {
        let published = |name: &str| {
            let adapter = Adapter { name: name.into(), path: "/nowhere".into() };
            Some(Published { checkpoint_id: CheckpointId::new(), adapter })
        };
        Cast {
            engine: self,
            prompts,
            encoder: &self.encoder,
            online: published("online"),
            target: published("target"),
            frozen: None,
            origin: None,
        }
    }
}

#[async_trait]
impl<F: Fn(Asked<'_>) -> String + Send + Sync> Engine for Stub<F> {
    fn name(&self) -> &str {
        "stub"
    }

    fn takes_seeds(&self) -> bool {
        true
    }

    async fn samples(&self, request: Request, count: u32) -> Result<Vec<Completion>, EngineError> {
        let prompt = self.encoder.decode(&request.prompt).unwrap();
        let adapter = request.adapter.as_ref().map(|a| a.name.as_str());
        let each = (0..count).map(|i| {
            let seed = request.sampling.of_sample(i).seed.unwrap();
            let text = (self.say)(Asked { adapter, prompt: &prompt, seed });
            let mut token_ids = self.encoder.encode_text(&text).unwrap();
            token_ids.push(2);
            Completion {
                engine: "stub".into(),
                model: adapter.unwrap_or("base").into(),
                prompt_tokens: u32::try_from(request.prompt.len()).unwrap(),
                logprobs: request.logprobs.then(|| vec![-1.0; token_ids.len()]),
                token_ids,
                text,
                finish_reason: FinishReason::Stop,
            }
        });
        Ok(each.collect())
    }

    async fn load(&self, _: &Adapter) -> Result<(), EngineError> {
        unreachable!("the algorithm loads nothing")
    }

    async fn unload(&self, _: &str) -> Result<(), EngineError> {
        unreachable!("the algorithm unloads nothing")
    }

    async fn check(&self) -> Result<EngineCapabilities, EngineError> {
        unreachable!("the algorithm checks nothing")
    }

    async fn tokenize_chat(&self, _: &[Message]) -> Result<Tokenized, EngineError> {
        unreachable!("the algorithm tokenises by itself")
    }

    async fn probe(&self, _: &Adapter, _: &[u32]) -> Result<(), EngineError> {
        unreachable!("the algorithm probes nothing")
    }
}
