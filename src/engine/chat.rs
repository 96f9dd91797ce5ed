//! Models that are never trained, behind chat endpoints: judges, critics and refiners that somebody hosts.
//!
//! TGI: written from the sources of 3.3.6 (`router/src/server.rs`, `router/src/lib.rs`), never run against one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::{
    Completion, EngineError, Frozen,
    dialect::{
        Wire,
        wire::{ChatAnswer, ChatBody, TgiInfo},
    },
};
use crate::{
    domain::{
        engine_limits::Limits,
        generation::{FinishReason, Sampling},
        peer::{EngineCapabilities, EngineKind, EngineRecord},
    },
    experience::{
        context::Context,
        message::{Block, Message, Speaker},
    },
    net::{NetError, retry},
    sharing::{Shares, Slots},
    telemetry::spans,
};

/// How often a text is asked for before the work that needs it fails.
const ATTEMPTS: u32 = 6;
/// Pause before the second attempt; hosted models limit rates by the minute.
const PAUSE: Duration = Duration::from_secs(1);

/// A chat endpoint of one or more replicas.
pub struct Chat {
    name: String,
    kind: EngineKind,
    seeds: bool,
    replicas: Vec<Wire>,
    next: AtomicUsize,
    slots: Arc<Slots>,
    /// It wants `max_completion_tokens`.
    renamed: AtomicBool,
    /// It takes no temperature and samples by its own.
    own_temperature: AtomicBool,
}

impl Chat {
    /// A client of a registered engine, with its API key where it wants one.
    ///
    /// # Errors
    /// An HTTP client that cannot be built.
    pub fn new(
        engine: &EngineRecord,
        key: Option<&str>,
        limits: Limits,
    ) -> Result<Self, EngineError> {
        let wires = engine.urls.iter().filter(|url| !engine.draining.contains(url));
        let replicas = wires.map(|url| Wire::new(engine, url, key, limits));
        let replicas = replicas.collect::<Result<Vec<_>, _>>()?;
        let in_flight = limits.in_flight as usize * replicas.len().max(1);
        Ok(Self {
            name: engine.name.clone(),
            kind: engine.kind,
            seeds: engine.seeds,
            replicas,
            next: AtomicUsize::new(0),
            slots: Slots::new(in_flight),
            renamed: AtomicBool::new(false),
            own_temperature: AtomicBool::new(false),
        })
    }

    /// The same endpoint, which uses its share of the slots.
    #[must_use]
    pub fn sharing(self, shares: &Shares) -> Self {
        shares.add(format!("chat engine {}", self.name), &self.slots);
        self
    }

    fn first(&self) -> Result<&Wire, EngineError> {
        self.replicas.first().ok_or_else(|| EngineError::Draining { engine: self.name.clone() })
    }

    /// The replica whose turn it is.
    fn wire(&self) -> &Wire {
        &self.replicas[self.next.fetch_add(1, Relaxed) % self.replicas.len()]
    }

    /// TGI takes any name but its own for an adapter's, and answers by the base model where it has none.
    fn model<'a>(&self, wire: &'a Wire) -> &'a str {
        if self.kind == EngineKind::Tgi { "tgi" } else { &wire.base_model }
    }

    /// The answer, and whether it was asked for without a temperature.
    async fn ask(
        &self,
        wire: &Wire,
        context: &Context,
        sampling: Sampling,
    ) -> Result<(ChatAnswer, bool), EngineError> {
        let renamed = self.renamed.load(Relaxed);
        let own_temperature = self.own_temperature.load(Relaxed);
        let shown = standard(context);
        let body = ChatBody {
            model: self.model(wire),
            conversation: (&shown).into(),
            max_tokens: (!renamed).then_some(sampling.max_tokens),
            max_completion_tokens: renamed.then_some(sampling.max_tokens),
            temperature: (!own_temperature).then_some(sampling.temperature),
            seed: sampling.seed,
        };
        let answer = wire.http.post("/v1/chat/completions", &body, wire.deadlines.generation).await;
        match answer {
            Err(NetError::Status { status: 400, body, .. })
                if !renamed && body.contains("max_completion_tokens") =>
            {
                self.renamed.store(true, Relaxed);
                Box::pin(self.ask(wire, context, sampling)).await
            }
            Err(NetError::Status { status: 400, body, .. })
                if !own_temperature && rejects_temperature(&body) =>
            {
                self.own_temperature.store(true, Relaxed);
                Box::pin(self.ask(wire, context, sampling)).await
            }
            // An empty purse is told by the status of a passing crowd.
            Err(NetError::Status { status: 429, body, .. })
                if body.contains("insufficient_quota") =>
            {
                Err(wire.wrong(format!("its account has no quota left: {body}")))
            }
            outcome => outcome.map(|answer| (answer, own_temperature)).map_err(|e| wire.net(e)),
        }
    }

    /// Whether the model was found to take no temperature. It is learned from the first request that the provider
    /// rejects for it.
    #[must_use]
    pub fn samples_by_its_own(&self) -> bool {
        self.own_temperature.load(Relaxed)
    }

    /// The text, with calls of tools as Hermes-style templates write them: chat endpoints tell them apart from the text.
    /// It is empty if the model only reasoned.
    fn checked(
        wire: &Wire,
        (answer, own_temperature): (ChatAnswer, bool),
        may_call: bool,
    ) -> Result<Completion, EngineError> {
        let [choice] = <[_; 1]>::try_from(answer.choices)
            .map_err(|all| wire.wrong(format!("asked for one choice, got {}", all.len())))?;
        let ended = match choice.finish_reason.as_deref() {
            Some("stop" | "eos_token" | "stop_sequence") => FinishReason::Stop,
            Some("tool_calls") if may_call => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            Some("content_filter") => {
                return Err(EngineError::Filtered { engine: wire.engine.clone() });
            }
            Some("abort") => return Err(wire.aborted()),
            other => {
                return Err(wire.wrong(format!("it ended for {other:?} without a usable text")));
            }
        };
        let blocks = choice.message.blocks.into_iter();
        let blocks: Vec<_> = blocks.filter(|block| !matches!(block, Block::Reasoning(_))).collect();
        let text = Message { role: Speaker::Assistant, blocks }.written().into_owned();
        let finish_reason = match ended {
            FinishReason::Stop if text.trim().is_empty() => FinishReason::Unanswered,
            ended => ended,
        };
        Ok(Completion {
            engine: wire.engine.clone(),
            model: answer.model,
            prompt_tokens: answer.usage.map_or(0, |usage| usage.prompt_tokens),
            token_ids: Vec::new(),
            logprobs: None,
            text,
            finish_reason,
            own_temperature,
        })
    }
}

/// A context as every chat API takes it. Many providers reject fields that they do not know.
fn standard(context: &Context) -> Context {
    let context = context.with_one_system();
    let messages = context.messages().iter().map(Message::standard).collect();
    Context::new(messages, context.frame().clone())
}

/// Whether a provider rejects a request for its temperature: `{"error": {"param": "temperature", …}}`, or a message
/// that names it where there is no `param`.
fn rejects_temperature(body: &str) -> bool {
    let Ok(body) = serde_json::from_str::<serde_json::Value>(body) else { return false };
    let error = &body["error"];
    match error["param"].as_str() {
        Some(param) => param == "temperature",
        None => error["message"].as_str().is_some_and(|message| message.contains("'temperature'")),
    }
}

#[async_trait]
impl Frozen for Chat {
    fn takes_seeds(&self) -> bool {
        self.seeds
    }

    async fn answer(
        &self,
        context: &Context,
        sampling: Sampling,
    ) -> Result<Completion, EngineError> {
        self.first()?;
        let _slot = self.slots.take(None, 1).await;
        // An answer has no effect but itself, so it may be asked for again, and elsewhere.
        retry(ATTEMPTS, PAUSE, EngineError::is_transient, async || {
            let wire = self.wire();
            spans::asked(wire.http.address());
            let may_call = !context.frame().tools.is_empty();
            Self::checked(wire, self.ask(wire, context, sampling).await?, may_call)
        })
        .await
    }

    async fn check(&self) -> Result<EngineCapabilities, EngineError> {
        let wire = self.first()?;
        if self.kind == EngineKind::Tgi {
            let info = wire.http.get("/info", wire.deadlines.control).await;
            let info: TgiInfo = info.map_err(|e| wire.net(e))?;
            return Ok(EngineCapabilities {
                version: info.version,
                max_model_len: info.max_total_tokens,
                max_running: info.max_concurrent_requests,
                models: vec![info.model_id],
                replicas: 1,
                ..EngineCapabilities::default()
            });
        }
        let models = wire.models().await?.data.into_iter().map(|card| card.id).collect();
        Ok(EngineCapabilities {
            version: "chat".into(),
            models,
            replicas: 1,
            ..EngineCapabilities::default()
        })
    }
}
