//! One replica that speaks vLLM's protocol: token-id prompts, returned ids, run-time LoRA.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::{OnceCell, Semaphore};

use super::{
    Adapter, Completion, EngineError, EngineInfo, Request,
    wire::{CompletionAnswer, CompletionBody, LoadBody, Models, TokenizeBody, Tokenized, Version},
};
use crate::{
    domain::{generation::FinishReason, message::Message},
    net::{Client, NetError, retry},
};

/// Bounds on what is asked of a replica.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests in flight; the engine's own queue has no bound.
    pub in_flight: usize,
    /// Deadline of one generation.
    pub generation: Duration,
    /// Deadline of loading an adapter; the first use of one compiles kernels on some engines.
    pub load: Duration,
    /// Deadline of everything else.
    pub control: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 256,
            generation: Duration::from_secs(300),
            load: Duration::from_secs(120),
            control: Duration::from_secs(15),
        }
    }
}

/// A client of one replica.
pub struct Vllm {
    name: String,
    base_model: String,
    http: Client,
    limits: Limits,
    slots: Semaphore,
    /// Adapters that this process has seen on the engine, loaded once each.
    verified: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
}

impl Vllm {
    /// A client of the replica at `url`.
    ///
    /// # Errors
    /// An HTTP client that cannot be built.
    pub fn new(
        name: &str,
        url: &str,
        base_model: &str,
        limits: Limits,
    ) -> Result<Self, EngineError> {
        let http = Client::new(url)
            .map_err(|source| EngineError::Net { engine: name.to_owned(), source })?;
        Ok(Self {
            name: name.to_owned(),
            base_model: base_model.to_owned(),
            http,
            limits,
            slots: Semaphore::new(limits.in_flight),
            verified: Mutex::default(),
        })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        self.http.base()
    }

    fn net(&self, source: NetError) -> EngineError {
        EngineError::Net { engine: self.name.clone(), source }
    }

    fn wrong(&self, what: String) -> EngineError {
        EngineError::Wrong { engine: self.name.clone(), what }
    }

    /// Loads an adapter unless this process has seen it on the engine.
    async fn ensure(&self, adapter: &Adapter) -> Result<(), EngineError> {
        let cell = {
            let mut verified =
                self.verified.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            verified.entry(adapter.name.clone()).or_default().clone()
        };
        cell.get_or_try_init(|| self.load(adapter)).await.map(|_| ())
    }

    fn forget(&self, name: &str) {
        self.verified.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(name);
    }

    /// The root that the engine serves a name from, if it serves it.
    async fn root_of(&self, name: &str) -> Result<Option<String>, EngineError> {
        let models: Models =
            self.http.get("/v1/models", self.limits.control).await.map_err(|e| self.net(e))?;
        Ok(models.data.into_iter().find(|card| card.id == name).and_then(|card| card.root))
    }

    async fn complete(&self, model: &str, request: &Request) -> Result<Completion, EngineError> {
        let body = CompletionBody {
            model,
            prompt: &request.prompt,
            max_tokens: request.sampling.max_tokens,
            temperature: request.sampling.temperature,
            seed: request.sampling.seed,
            return_token_ids: true,
            logprobs: request.logprobs.then_some(0),
            cache_salt: request.adapter.as_ref().map(|a| a.name.as_str()),
        };
        let answer: CompletionAnswer = self
            .http
            .post("/v1/completions", &body, self.limits.generation)
            .await
            .map_err(|e| self.net(e))?;
        let completion = self.checked(model, request, answer)?;
        let (prompt, written) = (completion.prompt_tokens, completion.token_ids.len() as u64);
        let engine = self.name.clone();
        metrics::counter!("nlac_prompt_tokens_total", "engine" => engine.clone())
            .increment(u64::from(prompt));
        metrics::counter!("nlac_generated_tokens_total", "engine" => engine).increment(written);
        Ok(completion)
    }

    /// Turns an answer into data, or refuses it.
    fn checked(
        &self,
        model: &str,
        request: &Request,
        answer: CompletionAnswer,
    ) -> Result<Completion, EngineError> {
        if answer.model != model {
            return Err(self.wrong(format!(
                "asked for model {model}, answered by {}; what it wrote is refused",
                answer.model
            )));
        }
        let [choice] = <[_; 1]>::try_from(answer.choices)
            .map_err(|all| self.wrong(format!("asked for one choice, got {}", all.len())))?;
        let prompt = choice.prompt_token_ids.ok_or_else(|| {
            self.wrong("it returns no token ids; nlac needs `return_token_ids`".into())
        })?;
        if prompt != request.prompt {
            return Err(self.wrong("it read another prompt than was sent".into()));
        }
        let token_ids = choice
            .token_ids
            .ok_or_else(|| self.wrong("it returns no token ids of its answer".into()))?;
        let finish_reason = match choice.finish_reason.as_deref() {
            Some("stop") => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            Some("abort") => return Err(EngineError::Aborted { engine: self.name.clone() }),
            other => return Err(self.wrong(format!("unknown finish reason {other:?}"))),
        };
        let logprobs = match (request.logprobs, choice.logprobs) {
            (false, _) => None,
            (true, Some(logprobs)) => {
                let all: Option<Vec<f32>> = logprobs.token_logprobs.into_iter().collect();
                let complete = all.filter(|all| all.len() == token_ids.len());
                Some(complete.ok_or_else(|| self.wrong("a log-probability is missing".into()))?)
            }
            (true, None) => return Err(self.wrong("it returns no log-probabilities".into())),
        };
        Ok(Completion {
            engine: self.name.clone(),
            model: answer.model,
            prompt_tokens: u32::try_from(prompt.len()).unwrap_or(u32::MAX),
            token_ids,
            logprobs,
            text: choice.text,
            finish_reason,
        })
    }
}

impl Vllm {
    /// Generates a text. An adapter that this process has not seen on the replica is loaded first.
    pub async fn generate(&self, request: &Request) -> Result<Completion, EngineError> {
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(self.wrong("the client was shut down".into()));
        };
        let model = request.adapter.as_ref().map_or(&self.base_model, |a| &a.name);
        if let Some(adapter) = &request.adapter {
            self.ensure(adapter).await?;
        }
        match (self.complete(model, request).await, &request.adapter) {
            // The replica has restarted and forgotten its adapters.
            (Err(EngineError::Net { source, .. }), Some(adapter))
                if source.status() == Some(404) =>
            {
                self.forget(&adapter.name);
                self.ensure(adapter).await?;
                self.complete(model, request).await
            }
            (outcome, _) => outcome,
        }
    }

    /// Loads an adapter and verifies that it is served from where it should be. Idempotent.
    pub async fn load(&self, adapter: &Adapter) -> Result<(), EngineError> {
        let path = adapter.path.display().to_string();
        let body = LoadBody { lora_name: &adapter.name, lora_path: Some(path.clone()) };
        let refused = |reason: String| EngineError::Load {
            engine: self.name.clone(),
            adapter: adapter.name.clone(),
            reason,
        };
        // A shared file system may show a new directory late; an answer of 500 is about the adapter
        // itself and does not get better.
        let late = |e: &NetError| matches!(e.status(), Some(404)) || e.status().is_none();
        let loaded = retry(6, Duration::from_millis(250), late, || {
            self.http.post_bytes("/v1/load_lora_adapter", &body, self.limits.load)
        })
        .await;
        if let Err(error) = loaded {
            let known = error.status() == Some(400);
            if !known && error.status().is_none() {
                return Err(self.net(error));
            }
            if !known {
                return Err(refused(error.to_string()));
            }
        }
        match self.root_of(&adapter.name).await? {
            Some(root) if root == path => Ok(()),
            Some(root) => Err(refused(format!("it serves that name from {root}, not from {path}"))),
            None => Err(refused("it does not list it after loading".into())),
        }
    }

    /// Unloads an adapter; one that is not there is fine.
    pub async fn unload(&self, name: &str) -> Result<(), EngineError> {
        self.forget(name);
        let body = LoadBody { lora_name: name, lora_path: None };
        match self.http.post_bytes("/v1/unload_lora_adapter", &body, self.limits.control).await {
            Err(error) if error.status() != Some(404) => Err(self.net(error)),
            _ => Ok(()),
        }
    }

    /// Asks who it is.
    pub async fn check(&self) -> Result<EngineInfo, EngineError> {
        let version: Version =
            self.http.get("/version", self.limits.control).await.map_err(|e| self.net(e))?;
        let models: Models =
            self.http.get("/v1/models", self.limits.control).await.map_err(|e| self.net(e))?;
        let base = models.data.iter().find(|card| card.id == self.base_model);
        Ok(EngineInfo {
            version: version.version,
            max_model_len: base.and_then(|card| card.max_model_len),
            models: models.data.into_iter().map(|card| card.id).collect(),
        })
    }

    /// The tokens of a conversation by the replica's own tokenizer and template.
    pub async fn tokenize_chat(&self, messages: &[Message]) -> Result<Vec<u32>, EngineError> {
        let model = self.base_model.as_str();
        let body = TokenizeBody { model, messages, add_generation_prompt: true };
        let answer: Tokenized = self
            .http
            .post("/tokenize", &body, self.limits.control)
            .await
            .map_err(|e| self.net(e))?;
        Ok(answer.tokens)
    }
}
