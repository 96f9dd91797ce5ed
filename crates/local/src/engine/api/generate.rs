//! Generation: completions and chat, whole or streamed.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    response::{IntoResponse, Response},
};
use rand::Rng;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Shared, control::parse, seconds, stream};
use crate::engine::{
    batch::{Event, Finish, Job, Message, Token},
    error::ApiError,
    sampler::{Sampler, Sampling},
    wire::{
        ChatChoice, ChatLogprob, ChatLogprobs, ChatMessage, ChatRequest, Common, Completion,
        CompletionRequest, Prompt, Stop, TextChoice, TextLogprobs, TopLogprob, Usage,
    },
};

/// A request after every check: what to generate, and how to word the answer.
pub(super) struct Plan {
    pub id: String,
    pub created: u64,
    pub model: String,
    pub prompts: Vec<Vec<u32>>,
    pub n: usize,
    pub stop: Vec<String>,
    pub return_token_ids: bool,
    pub include_usage: bool,
    pub logprobs: Option<usize>,
    pub chat: bool,
}

/// One finished sequence.
pub(super) struct Written {
    pub tokens: Vec<Token>,
    pub text: String,
    pub finish_reason: &'static str,
    pub stop_reason: Option<serde_json::Value>,
}

pub(super) async fn completions(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<CompletionRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let request = parse(body)?;
    let encode = |text: &String| {
        shared.tokenizer.encode(text, true).map_err(|e| ApiError::bad_request(e.to_string()))
    };
    let prompts = match &request.prompt {
        Prompt::Text(text) => vec![encode(text)?],
        Prompt::Texts(texts) => texts.iter().map(encode).collect::<Result<_, _>>()?,
        Prompt::Tokens(tokens) => vec![tokens.clone()],
        Prompt::TokenLists(lists) => lists.clone(),
    };
    let (common, max_tokens) = (request.common, request.max_tokens.unwrap_or(16));
    answer(&shared, common, prompts, Some(max_tokens), request.logprobs, false).await
}

pub(super) async fn chat(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<ChatRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let request = parse(body)?;
    let prompt = shared
        .tokenizer
        .encode_chat(&request.messages, true)
        .map_err(|e| ApiError::bad_request(e.to_string()))?;
    let logprobs = request.logprobs.then_some(request.top_logprobs.unwrap_or(0));
    let max_tokens = request.max_completion_tokens.or(request.max_tokens);
    answer(&shared, request.common, vec![prompt], max_tokens, logprobs, true).await
}

async fn answer(
    shared: &Arc<Shared>,
    common: Common,
    prompts: Vec<Vec<u32>>,
    max_tokens: Option<usize>,
    logprobs: Option<usize>,
    chat: bool,
) -> Result<Response, ApiError> {
    let (plan, receivers) = submit(shared, &common, prompts, max_tokens, logprobs, chat)?;
    if common.stream {
        return Ok(stream::respond(shared.clone(), plan, receivers));
    }
    let mut written = Vec::with_capacity(receivers.len());
    for receiver in receivers {
        written.push(collect(shared, &plan, receiver).await?);
    }
    Ok(whole(shared, &plan, written))
}

/// Checks a request and hands its sequences to the compute thread.
fn submit(
    shared: &Shared,
    common: &Common,
    prompts: Vec<Vec<u32>>,
    max_tokens: Option<usize>,
    logprobs: Option<usize>,
    chat: bool,
) -> Result<(Plan, Vec<UnboundedReceiver<Event>>), ApiError> {
    if let Some(field) = common.unsupported() {
        return Err(ApiError::bad_request(format!("{field} is not supported by this engine")));
    }
    let served = shared.adapters.find(common.model.as_deref())?;
    let n = common.n.unwrap_or(1);
    if n == 0 || n > 1024 {
        return Err(ApiError::bad_request(format!("n must be between 1 and 1024, got {n}.")));
    }
    let temperature = common.temperature.unwrap_or(1.0);
    if !(0.0..=100.0).contains(&temperature) {
        return Err(ApiError::bad_request(format!(
            "temperature must be non-negative, got {temperature}."
        )));
    }
    let top_p = common.top_p.unwrap_or(1.0);
    if !(top_p > 0.0 && top_p <= 1.0) {
        return Err(ApiError::bad_request(format!("top_p must be in (0, 1], got {top_p}.")));
    }
    if logprobs.is_some_and(|count| count > 20) {
        let text =
            "Requested sample logprobs of more than 20, which is greater than max allowed: 20";
        return Err(ApiError::bad_request(text));
    }
    if let Some(salt) = &common.cache_salt {
        let bad = salt.is_empty() || salt.len() > 128 || salt.contains(['@', '/', '\\', '\0']);
        if bad {
            return Err(ApiError::bad_request(
                "Parameter 'cache_salt' must be a non-empty string of at most 128 characters \
                 without '@', '/', '\\' or NUL.",
            ));
        }
    }
    let limit = shared.config.max_position_embeddings;
    for prompt in &prompts {
        if prompt.is_empty() {
            return Err(ApiError::bad_request("The decoder prompt cannot be empty"));
        }
        if let Some(odd) = prompt.iter().find(|t| **t as usize >= shared.config.vocab_size) {
            return Err(ApiError::bad_request(format!("Token id {odd} is out of vocabulary")));
        }
        let wanted = max_tokens.unwrap_or(1);
        if wanted == 0 {
            return Err(ApiError::bad_request("max_tokens must be at least 1, got 0."));
        }
        if prompt.len() + wanted > limit {
            return Err(ApiError::bad_request(format!(
                "This model's maximum context length is {limit} tokens. However, you requested \
                 {wanted} output tokens and your prompt contains {} input tokens.",
                prompt.len()
            ))
            .param("input_tokens"));
        }
    }
    let gauges = &shared.gauges;
    let waiting = gauges.waiting.load(std::sync::atomic::Ordering::Relaxed) as usize;
    if waiting + prompts.len() * n > shared.options.max_waiting {
        return Err(ApiError::busy());
    }
    let stop = match &common.stop {
        None => Vec::new(),
        Some(Stop::One(text)) => vec![text.clone()],
        Some(Stop::Many(texts)) => texts.clone(),
    };
    let seed = common.seed.map_or_else(|| rand::rng().random(), i64::cast_unsigned);
    let mut receivers = Vec::with_capacity(prompts.len() * n);
    for prompt in &prompts {
        for index in 0..n {
            let (reply, receiver) = unbounded_channel();
            let sampling = Sampling {
                temperature,
                top_p,
                top_k: common.top_k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0),
                min_p: common.min_p.unwrap_or(0.0),
            };
            shared.send(Message::Generate(Job {
                served: served.clone(),
                prompt: prompt.clone(),
                max_tokens: max_tokens.unwrap_or(limit - prompt.len()),
                sampler: Sampler::new(sampling, seed.wrapping_add(index as u64)),
                stop_tokens: common.stop_token_ids.clone(),
                ignore_eos: common.ignore_eos,
                logprobs,
                cache_salt: common.cache_salt.clone(),
                reply,
            }));
            receivers.push(receiver);
        }
    }
    let kind = if chat { "chatcmpl" } else { "cmpl" };
    let plan = Plan {
        id: format!("{kind}-{}", shared.next_request()),
        created: seconds(),
        model: served.name,
        prompts,
        n,
        stop,
        return_token_ids: common.return_token_ids,
        include_usage: common.stream_options.include_usage,
        logprobs,
        chat,
    };
    Ok((plan, receivers))
}

/// Waits for one sequence. Stop strings end it here: dropping the receiver stops the computation.
async fn collect(
    shared: &Shared,
    plan: &Plan,
    mut receiver: UnboundedReceiver<Event>,
) -> Result<Written, ApiError> {
    let mut tokens = Vec::new();
    while let Some(event) = receiver.recv().await {
        match event {
            Event::Token(token) => {
                tokens.push(token);
                if plan.stop.is_empty() {
                    continue;
                }
                let text = decode(shared, &tokens)?;
                if let Some((at, stop)) = first_stop(&text, &plan.stop) {
                    let stop_reason = Some(stop.into());
                    let text = text[..at].to_owned();
                    return Ok(Written { tokens, text, finish_reason: "stop", stop_reason });
                }
            }
            Event::Finished(finish) => {
                let text = decode(shared, &tokens)?;
                let (finish_reason, stop_reason) = reasons(finish);
                return Ok(Written { tokens, text, finish_reason, stop_reason });
            }
        }
    }
    Err(ApiError::internal("The engine stopped before the request was finished."))
}

pub(super) fn first_stop<'a>(text: &str, stops: &'a [String]) -> Option<(usize, &'a str)> {
    stops.iter().filter_map(|s| Some((text.find(s.as_str())?, s.as_str()))).min()
}

pub(super) fn reasons(finish: Finish) -> (&'static str, Option<serde_json::Value>) {
    match finish {
        Finish::Eos => ("stop", None),
        Finish::StopToken(id) => ("stop", Some(id.into())),
        Finish::Length => ("length", None),
    }
}

pub(super) fn decode(shared: &Shared, tokens: &[Token]) -> Result<String, ApiError> {
    let ids: Vec<_> = tokens.iter().map(|t| t.id).collect();
    shared.tokenizer.decode(&ids, true).map_err(|e| ApiError::internal(e.to_string()))
}

fn whole(shared: &Shared, plan: &Plan, written: Vec<Written>) -> Response {
    let prompt_tokens: usize = plan.prompts.iter().map(Vec::len).sum();
    let completion_tokens = written.iter().map(|w| w.tokens.len()).sum();
    let usage =
        Usage { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens };
    let head = (plan.id.clone(), plan.created, plan.model.clone(), Some(usage));
    let (id, created, model, usage) = head;
    if plan.chat {
        let choices =
            written.into_iter().enumerate().map(|(i, w)| chat_choice(shared, plan, i, w)).collect();
        let prompt_token_ids = plan.return_token_ids.then(|| plan.prompts[0].clone());
        let object = "chat.completion";
        Json(Completion { id, object, created, model, choices, usage, prompt_token_ids })
            .into_response()
    } else {
        let choices =
            written.into_iter().enumerate().map(|(i, w)| text_choice(shared, plan, i, w)).collect();
        let object = "text_completion";
        Json(Completion { id, object, created, model, choices, usage, prompt_token_ids: None })
            .into_response()
    }
}

pub(super) fn ids(plan: &Plan, tokens: &[Token]) -> Option<Vec<u32>> {
    plan.return_token_ids.then(|| tokens.iter().map(|t| t.id).collect())
}

pub(super) fn text_choice(shared: &Shared, plan: &Plan, index: usize, w: Written) -> TextChoice {
    TextChoice {
        index,
        token_ids: ids(plan, &w.tokens),
        prompt_token_ids: plan.return_token_ids.then(|| plan.prompts[index / plan.n].clone()),
        logprobs: plan.logprobs.map(|_| text_logprobs(shared, &w.tokens)),
        text: w.text,
        finish_reason: Some(w.finish_reason),
        stop_reason: w.stop_reason,
        prompt_logprobs: None,
    }
}

pub(super) fn chat_choice(shared: &Shared, plan: &Plan, index: usize, w: Written) -> ChatChoice {
    ChatChoice {
        index,
        token_ids: ids(plan, &w.tokens),
        logprobs: plan.logprobs.map(|_| chat_logprobs(shared, &w.tokens)),
        message: Some(ChatMessage { role: Some("assistant"), content: w.text }),
        delta: None,
        finish_reason: Some(w.finish_reason),
        stop_reason: w.stop_reason,
    }
}

fn word(shared: &Shared, id: u32) -> String {
    shared.tokenizer.token(id).unwrap_or_default()
}

pub(super) fn text_logprobs(shared: &Shared, tokens: &[Token]) -> TextLogprobs {
    let mut logprobs = TextLogprobs::default();
    let mut offset = 0;
    for token in tokens {
        let text = word(shared, token.id);
        logprobs.text_offset.push(offset);
        offset += text.len();
        logprobs.tokens.push(text);
        logprobs.token_logprobs.push(token.logprob);
        let mut top: BTreeMap<_, _> =
            token.top.iter().map(|(id, logprob)| (word(shared, *id), *logprob)).collect();
        if let Some(logprob) = token.logprob {
            top.insert(word(shared, token.id), logprob);
        }
        logprobs.top_logprobs.push(Some(top));
    }
    logprobs
}

pub(super) fn chat_logprobs(shared: &Shared, tokens: &[Token]) -> ChatLogprobs {
    let content = tokens
        .iter()
        .map(|token| ChatLogprob {
            token: word(shared, token.id),
            logprob: token.logprob.unwrap_or_default(),
            bytes: Some(word(shared, token.id).into_bytes()),
            top_logprobs: token
                .top
                .iter()
                .map(|(id, logprob)| TopLogprob {
                    token: word(shared, *id),
                    logprob: *logprob,
                    bytes: Some(word(shared, *id).into_bytes()),
                })
                .collect(),
        })
        .collect();
    ChatLogprobs { content }
}
