//! Reads requests of messages.

use serde_json::Value;

use super::{settings::TABLE, turns};
use crate::{
    experience::{
        context::{Frame, Tool},
        message::{Message, Speaker},
    },
    gateway::wire::{Asked, Refused, ToolChoice, asked, fields::Field, settings, tools},
};

pub(in crate::gateway::wire) fn read(body: &Value) -> Result<Asked, Refused> {
    let asked = read_count(body)?;
    let body = Field::body(body)?;
    body.need("max_tokens")?;
    let last = asked.context.messages().last();
    if last.is_some_and(|message| message.role == Speaker::Assistant) {
        return Err(body
            .need("messages")?
            .unsupported(
                "the last message is of the assistant, and continuing an answer is not supported",
            )
            .remedy("end with a message of the user"));
    }
    Ok(asked)
}

pub(in crate::gateway::wire) fn read_count(body: &Value) -> Result<Asked, Refused> {
    let body = Field::body(body)?;
    settings::check(&body, TABLE)?;
    let model = body.text_of("model")?.to_owned();
    let all = body.need("messages")?;
    let (system, mut messages) = turns::read(body.get("system"), &all)?;
    if messages.is_empty() {
        return Err(all.wrong("a list of at least one message"));
    }
    let instructed = system.is_some();
    messages.splice(..0, system.map(Message::system));
    let frame = Frame { tools: offered(&body)?, switches: asked::switches(&body)? };
    Ok(Asked {
        instructed,
        choice: choice(&body)?,
        temperature: asked::temperature(&body)?,
        max_tokens: asked::limit(&body, "max_tokens")?,
        stop: asked::stop(&body, "stop_sequences")?,
        stream: body.yes("stream", false)?,
        usage_in_stream: true,
        ..Asked::new(model, messages, frame)
    })
}

fn choice(body: &Field<'_>) -> Result<ToolChoice, Refused> {
    let Some(field) = body.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match field.text_of("type")? {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        _ => Err(tools::demanded(&field)),
    }
}

/// Tools that the agent runs. A tool of any other type is run by Anthropic or described by it.
fn offered(body: &Field<'_>) -> Result<Vec<Tool>, Refused> {
    let Some(field) = body.get("tools") else { return Ok(Vec::new()) };
    let read = |tool: Field<'_>| match tool.get("type").map_or(Ok("custom"), |kind| kind.text())? {
        "custom" => tools::function(&tool, "input_schema"),
        kind => Err(tool
            .unsupported(format_args!("a tool of type {kind} is not supported"))
            .remedy("give the agent a tool with an input_schema for this purpose")),
    };
    field.list()?.into_iter().map(read).collect()
}
