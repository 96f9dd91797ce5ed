//! The same answers, token by token, as server-sent events.

use std::{convert::Infallible, sync::Arc};

use axum::response::{
    IntoResponse, Response,
    sse::{Event as Sse, Sse as SseResponse},
};
use futures_util::StreamExt;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    Shared,
    generate::{
        Plan, Written, chat_choice, decode, first_stop, ids, reasons, text_choice, text_logprobs,
    },
};
use crate::engine::{
    batch::{Event, Token},
    error::ApiError,
    wire::{ChatMessage, Completion, Usage},
};

pub(super) fn respond(
    shared: Arc<Shared>,
    plan: Plan,
    receivers: Vec<UnboundedReceiver<Event>>,
) -> Response {
    let (sender, chunks) = unbounded_channel::<Sse>();
    tokio::spawn(async move {
        let mut written = 0;
        for (index, receiver) in receivers.into_iter().enumerate() {
            let writer = Writer { shared: &shared, plan: &plan, index };
            match writer.write(receiver, |chunk| sender.send(chunk).is_ok()).await {
                Ok(tokens) => written += tokens,
                Err(()) => return,
            }
        }
        if plan.include_usage {
            let prompt_tokens = plan.prompts.iter().map(Vec::len).sum();
            let usage = Usage {
                prompt_tokens,
                completion_tokens: written,
                total_tokens: prompt_tokens + written,
            };
            let chunk = envelope::<()>(&plan, Vec::new(), Some(usage));
            // A client that has gone needs no usage.
            let _ = Sse::default().json_data(chunk).map(|chunk| sender.send(chunk));
        }
        let _ = sender.send(Sse::default().data("[DONE]"));
    });
    let stream = futures_util::stream::unfold(chunks, |mut chunks| async move {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    });
    SseResponse::new(stream.map(Ok::<_, Infallible>)).into_response()
}

fn envelope<C>(plan: &Plan, choices: Vec<C>, usage: Option<Usage>) -> Completion<C> {
    Completion {
        id: plan.id.clone(),
        object: if plan.chat { "chat.completion.chunk" } else { "text_completion" },
        created: plan.created,
        model: plan.model.clone(),
        choices,
        usage,
        prompt_token_ids: None,
    }
}

struct Writer<'a> {
    shared: &'a Shared,
    plan: &'a Plan,
    index: usize,
}

impl Writer<'_> {
    /// Sends one sequence's chunks; returns its tokens, or an error when the client has gone.
    async fn write(
        &self,
        mut receiver: UnboundedReceiver<Event>,
        mut send: impl FnMut(Sse) -> bool,
    ) -> Result<usize, ()> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut sent = 0;
        while let Some(event) = receiver.recv().await {
            let (new, finish) = match event {
                Event::Token(token) => {
                    tokens.push(token.clone());
                    (vec![token], None)
                }
                Event::Finished(finish) => (Vec::new(), Some(reasons(finish))),
            };
            let text = decode(self.shared, &tokens).map_err(|_: ApiError| ())?;
            let stop = first_stop(&text, &self.plan.stop);
            let (until, finish) = match stop {
                Some((at, stop)) => (at, Some(("stop", Some(stop.into())))),
                None => (text.len(), finish),
            };
            let delta = text.get(sent..until).unwrap_or_default().to_owned();
            sent = until.max(sent);
            let ended = finish.is_some();
            if !send(self.chunk(new, delta, finish, tokens.len() == 1)) {
                return Err(());
            }
            if ended {
                return Ok(tokens.len());
            }
        }
        Err(())
    }

    fn chunk(
        &self,
        tokens: Vec<Token>,
        text: String,
        finish: Option<(&'static str, Option<serde_json::Value>)>,
        first: bool,
    ) -> Sse {
        let (finish_reason, stop_reason) = finish.unzip();
        let stop_reason = stop_reason.flatten();
        let token_ids = ids(self.plan, &tokens);
        let logprobs = self.plan.logprobs.map(|_| text_logprobs(self.shared, &tokens));
        let written = Written { tokens, text, finish_reason: "", stop_reason };
        if self.plan.chat {
            let mut choice = chat_choice(self.shared, self.plan, self.index, written);
            let content = choice.message.take().map(|m| m.content).unwrap_or_default();
            let role = first.then_some("assistant");
            choice.delta = Some(ChatMessage { role, content });
            choice.finish_reason = finish_reason;
            choice.token_ids = token_ids;
            self.event(choice)
        } else {
            let mut choice = text_choice(self.shared, self.plan, self.index, written);
            choice.finish_reason = finish_reason;
            choice.token_ids = token_ids;
            choice.logprobs = logprobs;
            if !first {
                choice.prompt_token_ids = None;
            }
            self.event(choice)
        }
    }

    fn event<C: Serialize>(&self, choice: C) -> Sse {
        let chunk = envelope(self.plan, vec![choice], None);
        Sse::default().json_data(chunk).unwrap_or_else(|e| Sse::default().data(e.to_string()))
    }
}
