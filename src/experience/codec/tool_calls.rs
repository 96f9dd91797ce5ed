//! Tool calls, in the formats that the model families were trained to write. A reply without a call is what the agent
//! says. Grammars: vLLM's tool parsers of the same names.

use serde_json::{Value, json};

use crate::{
    domain::{
        reasoning::{Parts, split},
        spec::ToolFormat,
    },
    experience::{
        action::{Action, Codec, Read, Reply, Unreadable, cut, message_of, thought, unanswered},
        context::Context,
        message::{Block, Message, ToolCall},
    },
};

/// Reads tool calls in a format.
#[derive(Debug, Clone, Copy)]
pub struct ToolCalls(pub ToolFormat);

impl Codec for ToolCalls {
    fn read(&self, reply: Reply<'_>, context: &Context) -> Read {
        let Parts { reasoning, answer } = split(reply.text);
        let Some(text) = answer else {
            let message = thought(reasoning, message_of("", Vec::new()));
            return Err(if reply.cut { cut(message) } else { unanswered(message) });
        };
        let parsed = match self.0 {
            ToolFormat::Hermes => hermes(text),
            ToolFormat::Llama3 => llama3(text),
            ToolFormat::Mistral => mistral(text),
        };
        let as_written = || thought(reasoning, message_of(text, Vec::new()));
        let (said, calls) = parsed.map_err(|why| Unreadable {
            message: as_written(),
            why: format!("a tool call {why}"),
        })?;
        let calls: Vec<_> =
            (0..).zip(calls).map(|(i, call)| identified(call, i, context)).collect();
        let message = thought(reasoning, message_of(said, calls));
        if reply.cut {
            return Err(cut(message));
        }
        self.reread(&message, context)
    }

    fn reread(&self, message: &Message, _context: &Context) -> Read {
        let message = message.clone();
        let lines: Vec<_> = message.tool_calls().map(ToolCall::line).collect();
        let said = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.trim()),
            _ => None,
        });
        let key = if lines.is_empty() { said.collect::<String>() } else { lines.join("\n") };
        if key.is_empty() {
            return Err(Unreadable {
                message,
                why: "it has neither a text nor a tool call".into(),
            });
        }
        Ok(Action { message, key })
    }

    fn write(&self, action: &Message) -> String {
        let is_call = |block: &&Block| matches!(block, Block::ToolCall(_));
        let said = action.blocks.iter().filter(|block| !is_call(block)).cloned().collect();
        let said = Message { role: action.role, blocks: said }.written().into_owned();
        let calls = |field: &str| action.tool_calls().map(|call| object(call, field)).collect();
        let calls: Vec<String> = match self.0 {
            ToolFormat::Llama3 => calls("parameters"),
            ToolFormat::Hermes | ToolFormat::Mistral => calls("arguments"),
        };
        match self.0 {
            _ if calls.is_empty() => said,
            ToolFormat::Hermes => {
                let calls = calls.iter().map(|call| format!("<tool_call>\n{call}\n</tool_call>"));
                let said = Some(said).filter(|said| !said.is_empty());
                said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
            }
            // Only a reply that begins with a call is one, so nothing is said beside it.
            ToolFormat::Llama3 => calls.join("; "),
            ToolFormat::Mistral => format!("{said}[TOOL_CALLS][{}]", calls.join(", ")),
        }
    }
}

/// A call as the families' templates write it.
fn object(call: &ToolCall, field: &str) -> String {
    let is_json = serde_json::from_str::<Value>(&call.arguments).is_ok();
    let arguments = match is_json {
        true => call.arguments.trim().to_owned(),
        false => json!(call.arguments).to_string(),
    };
    format!("{{\"name\": {}, \"{field}\": {arguments}}}", json!(call.name))
}

/// A call with an id that no other call of its conversation has: nine letters and digits, as Mistral's templates
/// demand.
fn identified(call: ToolCall, number: usize, context: &Context) -> ToolCall {
    ToolCall { id: format!("call{:05}", 100 * context.messages().len() + number), ..call }
}

/// What is said, and the calls; or what is wrong with a call.
type Parsed<'a> = Result<(&'a str, Vec<ToolCall>), String>;

/// A call in JSON. The arguments stay as they were written where they are a text.
fn call(json: &Value) -> Result<ToolCall, String> {
    let name = json["name"].as_str().ok_or("has no name")?;
    let arguments = match (&json["arguments"], &json["parameters"]) {
        (Value::Null, Value::Null) => return Err("has no arguments".into()),
        (Value::Null, given) | (given, _) => match given {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        },
    };
    Ok(ToolCall { id: String::new(), name: name.to_owned(), arguments })
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text.trim()).map_err(|e| format!("is not JSON: {e}"))
}

/// The closing tag may be missing at the end.
fn hermes(text: &str) -> Parsed<'_> {
    let mut parts = text.split("<tool_call>");
    let said = parts.next().unwrap_or_default();
    let calls = parts.map(|part| {
        let inner = part.split_once("</tool_call>").map_or(part, |(inner, _)| inner);
        call(&parsed(inner)?)
    });
    Ok((said, calls.collect::<Result<_, _>>()?))
}

/// Only a reply that begins with a call is one: Llama answers in JSON, too.
fn llama3(text: &str) -> Parsed<'_> {
    let trimmed = text.trim();
    let tagged = trimmed.strip_prefix("<|python_tag|>");
    let body = tagged.unwrap_or(trimmed);
    if !body.trim_start().starts_with('{') {
        return Ok((text, Vec::new()));
    }
    let mut calls = Vec::new();
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
    let mut rest = body;
    while let Some(value) = values.next() {
        let value = value.map_err(|e| format!("is not JSON: {e}"))?;
        calls.push(call(&value)?);
        rest = rest[values.byte_offset()..].trim_start();
        let Some(more) = rest.strip_prefix(';') else { break };
        rest = more;
        values = serde_json::Deserializer::from_str(more).into_iter::<Value>();
    }
    Ok(("", calls))
}

fn mistral(text: &str) -> Parsed<'_> {
    let mut parts = text.split("[TOOL_CALLS]");
    let said = parts.next().unwrap_or_default();
    let mut calls = Vec::new();
    for part in parts {
        if part.trim_start().starts_with('[') {
            let list = serde_json::Deserializer::from_str(part).into_iter::<Vec<Value>>().next();
            let list = list.ok_or("is empty")?.map_err(|e| format!("is not JSON: {e}"))?;
            for each in &list {
                calls.push(call(each)?);
            }
            continue;
        }
        let at = part.find('{').ok_or("has no arguments")?;
        let name = part[..at].trim_end_matches("[ARGS]").trim();
        let name = name.split("[CALL_ID]").next().unwrap_or(name).trim();
        if name.is_empty() {
            return Err("has no name".into());
        }
        let (id, arguments) = (String::new(), part[at..].trim().to_owned());
        calls.push(ToolCall { id, name: name.to_owned(), arguments });
    }
    Ok((said, calls))
}

#[cfg(test)]
mod tests {
    use super::ToolCalls;
    use crate::domain::spec::ToolFormat;
    use crate::experience::{
        action::{Codec, Reply},
        context::Context,
        message::{Block, Message},
    };

    fn read(format: ToolFormat, text: &str) -> super::Read {
        let context = Context::of(vec![Message::user("Where is order #W12?")]);
        ToolCalls(format).read(Reply::whole(text), &context)
    }

    #[test]
    fn every_family_writes_the_same_two_calls() {
        let hermes = "Let me look.\n<tool_call>\n{\"name\": \"find_order\", \"arguments\": {\"id\": \"#W12\"}}\n\
            </tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
        let unclosed = hermes.strip_suffix("\n</tool_call>").unwrap_or_default();
        let llama = "<|python_tag|>{\"name\": \"find_order\", \"parameters\": {\"id\": \"#W12\"}}; {\"name\": \"now\", \
            \"parameters\": {}}";
        let old = "[TOOL_CALLS][{\"name\": \"find_order\", \"arguments\": {\"id\": \"#W12\"}}, {\"name\": \"now\", \
            \"arguments\": {}}]";
        let new = "Checking.[TOOL_CALLS]find_order{\"id\": \"#W12\"}[TOOL_CALLS]now[ARGS]{}";
        let expected = "{\"arguments\":{\"id\":\"#W12\"},\"name\":\"find_order\"}\n{\"arguments\":{},\"name\":\"now\"}";
        for (format, text) in [
            (ToolFormat::Hermes, hermes),
            (ToolFormat::Hermes, unclosed),
            (ToolFormat::Llama3, llama),
            (ToolFormat::Mistral, old),
            (ToolFormat::Mistral, new),
        ] {
            let action = read(format, text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(action.key, expected, "{text}");
            let ids: std::collections::BTreeSet<_> =
                action.message.tool_calls().map(|call| call.id.clone()).collect();
            assert!(ids.len() == 2 && ids.iter().all(|id| id.len() == 9), "{ids:?}");
        }
    }

    #[test]
    fn a_quoted_action_is_text_that_reads_as_the_same_action() {
        let text = "<think>\nhm\n</think>\nLet me look.\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"id\":7}}\n\
            </tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
        let action = read(ToolFormat::Hermes, text).unwrap_or_else(|e| panic!("{e}"));
        let quoted = ToolCalls(ToolFormat::Hermes).quoted(&action.message);
        let (_, said) = text.split_once("</think>\n").unwrap_or_default();
        assert_eq!(
            quoted.blocks,
            [Block::Text(said.into())],
            "chat templates need a result for each call, and only templates read the reasoning"
        );
        for format in [ToolFormat::Hermes, ToolFormat::Llama3, ToolFormat::Mistral] {
            let written = ToolCalls(format).write(&action.message);
            let again = read(format, &written).unwrap_or_else(|e| panic!("{written}: {e}"));
            assert_eq!(again.key, action.key, "{written}");
        }
        let said = Message::assistant("It was shipped.");
        assert_eq!(ToolCalls(ToolFormat::Mistral).quoted(&said), said);
    }

    #[test]
    fn text_and_reasoning_do_not_tell_two_calls_apart() {
        let call = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
        let thought = format!("<think>\nWhat time is it?\n</think>\n\nOne moment. {call}");
        let [bare, full] = [call, thought.as_str()]
            .map(|text| read(ToolFormat::Hermes, text).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(bare.key, full.key);
        assert_eq!(full.message.blocks[0], Block::Reasoning("What time is it?".into()));
        assert_eq!(full.message.blocks[1], Block::Text("One moment.".into()));
        let said = read(ToolFormat::Hermes, " It was shipped. ").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((said.key.as_str(), said.message.blocks.len()), ("It was shipped.", 1));
    }

    #[test]
    fn what_is_no_call_says_why() {
        for (format, text, why) in [
            (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\"</tool_call>", "not JSON"),
            (ToolFormat::Hermes, "<tool_call>{\"name\": \"now\"}</tool_call>", "no arguments"),
            (ToolFormat::Hermes, "  ", "neither"),
            (ToolFormat::Llama3, "{\"parameters\": {}}", "no name"),
            (ToolFormat::Mistral, "[TOOL_CALLS]now", "no arguments"),
        ] {
            let unreadable = read(format, text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(unreadable.why.contains(why), "{text}: {}", unreadable.why);
        }
        let context = Context::of(Vec::new());
        let cut = Reply { text: "It was", cut: true };
        assert!(ToolCalls(ToolFormat::Hermes).read(cut, &context).is_err());
    }
}
