//! Writes answers of responses.

use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    experience::message::Block,
    gateway::wire::{Answer, Asked, Dialect, tools},
};

pub(in crate::gateway::wire) fn answer(asked: &Asked, answer: &Answer) -> Value {
    let mut response = response(asked, answer.id, answer.created, &answer.model);
    response["status"] = status(answer).into();
    response["output"] = items(answer).into();
    response["usage"] = usage(answer);
    if answer.is_cut() {
        response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    } else {
        response["completed_at"] = answer.created.unix_timestamp().into();
    }
    response
}

/// A response in progress: all that is known before the model has written anything.
pub(super) fn response(asked: &Asked, id: Uuid, created: OffsetDateTime, model: &str) -> Value {
    let mut response = json!({
        "id": Dialect::Responses.write_id(id),
        "object": "response",
        "created_at": created.unix_timestamp(),
        "completed_at": null,
        "status": "in_progress",
        "model": model,
        "output": [],
        "error": null,
        "incomplete_details": null,
        "usage": null,
        "background": false,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "service_tier": "default",
        "store": true,
        "temperature": null,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
    });
    for (key, value) in &asked.echo {
        response[key] = value.clone();
    }
    response
}

fn status(answer: &Answer) -> &'static str {
    if answer.is_cut() { "incomplete" } else { "completed" }
}

/// Whose counts are unknown is counted as zero, because the type requires a number: the gateway counts neither cached
/// tokens nor those of the reasoning.
fn usage(answer: &Answer) -> Value {
    json!({
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": answer.total_tokens(),
    })
}

/// An item for each block. If the answer was cut, its last item is incomplete.
pub(super) fn items(answer: &Answer) -> Vec<Value> {
    let mut items: Vec<_> =
        answer.blocks().enumerate().map(|(number, block)| item(answer, number, block)).collect();
    if items.is_empty() {
        items.push(item(answer, 0, &Block::Text(String::new())));
    }
    if let Some(last) = items.last_mut() {
        last["status"] = status(answer).into();
    }
    items
}

/// A call's item has the id of the call: LiteLLM answers the item's id where it should answer the call's.
fn item(answer: &Answer, number: usize, block: &Block) -> Value {
    let id = |prefix: &str| format!("{prefix}_{}_{number}", answer.id.simple());
    match block {
        Block::Reasoning(text) => json!({
            "type": "reasoning",
            "id": id("rs"),
            "summary": [],
            "content": [reasoning_text(text)],
            "status": "completed",
        }),
        Block::ToolCall(call) => json!({
            "type": "function_call",
            "id": call.id,
            "call_id": call.id,
            "name": call.name,
            "arguments": tools::written(call),
            "status": "completed",
        }),
        Block::Text(text) => message(&id("msg"), text),
        Block::ToolResult(result) => message(&id("msg"), &result.text),
    }
}

fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": "completed",
        "content": [output_text(text)],
    })
}

pub(super) fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

pub(super) fn reasoning_text(text: &str) -> Value {
    json!({ "type": "reasoning_text", "text": text })
}
