//! Writes answers of messages.

use serde_json::{Value, json};

use super::turns::RAW;
use crate::{
    experience::message::{Block, ToolCall},
    gateway::wire::{Answer, Dialect, Ended, Event, tools},
};

pub(in crate::gateway::wire) fn answer(answer: &Answer) -> Value {
    let (reason, sequence) = stop(answer);
    let mut message = begun(answer);
    message["content"] = answer.blocks().map(block).collect();
    message["stop_reason"] = reason.into();
    message["stop_sequence"] = sequence.into();
    message["usage"]["output_tokens"] = answer.completion_tokens.into();
    message
}

/// The message before the model has written anything.
fn begun(answer: &Answer) -> Value {
    json!({
        "id": Dialect::Messages.write_id(answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": answer.prompt_tokens,
            "output_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    })
}

fn stop(answer: &Answer) -> (&'static str, Option<&str>) {
    match &answer.end {
        Ended::Length => ("max_tokens", None),
        _ if answer.calls_tools() => ("tool_use", None),
        Ended::StopSequence(text) => ("stop_sequence", Some(text)),
        Ended::Stop => ("end_turn", None),
    }
}

/// Thinking has an empty signature: nobody here checks one, and the type requires it.
fn block(block: &Block) -> Value {
    match block {
        Block::Reasoning(text) => json!({ "type": "thinking", "thinking": text, "signature": "" }),
        Block::ToolCall(call) => tool_use(call, input(call)),
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::ToolResult(result) => json!({ "type": "text", "text": result.text }),
    }
}

fn tool_use(call: &ToolCall, input: Value) -> Value {
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

/// The arguments as an object. Arguments that are none stand under one key, and are read back from it.
fn input(call: &ToolCall) -> Value {
    match serde_json::from_str(tools::written(call)) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ RAW: call.arguments }),
    }
}

/// The message's begin, each block (its begin, one delta, its end), the stop reason, the message's end.
pub(in crate::gateway::wire) fn events(answer: &Answer) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |name: &'static str, mut data: Value| {
        data["type"] = name.into();
        events.push(Event::named(name, &data));
    };
    push("message_start", json!({ "message": begun(answer) }));
    for (index, each) in answer.blocks().enumerate() {
        let (begun, deltas) = parts(each);
        push("content_block_start", json!({ "index": index, "content_block": begun }));
        for delta in deltas {
            push("content_block_delta", json!({ "index": index, "delta": delta }));
        }
        push("content_block_stop", json!({ "index": index }));
    }
    let (reason, sequence) = stop(answer);
    let delta = json!({ "stop_reason": reason, "stop_sequence": sequence });
    let usage = json!({
        "input_tokens": answer.prompt_tokens,
        "output_tokens": answer.completion_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    });
    push("message_delta", json!({ "delta": delta, "usage": usage }));
    push("message_stop", json!({}));
    events
}

/// A block before anything is in it, and what fills it.
fn parts(whole: &Block) -> (Value, Vec<Value>) {
    let mut begun = block(whole);
    let deltas = match whole {
        Block::Reasoning(text) => {
            begun["thinking"] = "".into();
            vec![
                json!({ "type": "thinking_delta", "thinking": text }),
                json!({ "type": "signature_delta", "signature": "" }),
            ]
        }
        Block::ToolCall(_) => {
            let input = begun["input"].take();
            begun["input"] = json!({});
            vec![json!({ "type": "input_json_delta", "partial_json": input.to_string() })]
        }
        Block::Text(_) | Block::ToolResult(_) => {
            let text = begun["text"].take();
            begun["text"] = "".into();
            vec![json!({ "type": "text_delta", "text": text })]
        }
    };
    (begun, deltas)
}
