//! OpenTelemetry spans with the GenAI attributes: OTLP as JSON, or one span per record as SDKs print them.
//!
//! A span is a call if its operation is one of a model. Its messages stand in attributes, in an event with the same
//! attributes, in one event per message, or in numbered attributes, as the conventions had it over time.

use serde_json::{Map, Value, json};

use super::{
    calls::{Bare, Call, Score},
    content,
    fields::{score, text, time_of, unpacked},
    reader::Found,
};
use crate::experience::message::Message;

/// Operations in which a model answers.
const CALLS: &[&str] = &["chat", "text_completion", "generate_content"];
/// Events that are one message each, and whose they are.
const SAID: &[(&str, &str)] = &[
    ("gen_ai.system.message", "system"),
    ("gen_ai.user.message", "user"),
    ("gen_ai.assistant.message", "assistant"),
    ("gen_ai.tool.message", "tool"),
];

/// A span in one notation.
struct Span {
    id: Option<String>,
    trace: Option<String>,
    start: i64,
    attributes: Map<String, Value>,
    events: Vec<(String, Map<String, Value>, i64)>,
    error: Option<String>,
}

/// Whether a record is a span, or holds some.
pub(super) fn is(record: &Value) -> bool {
    let traced = record["context"]["trace_id"].is_string() || record["traceId"].is_string();
    let flat = record["TraceId"].is_string() && record["SpanAttributes"].is_object();
    let spans = record["attributes"].is_object() || record["attributes"].is_array();
    record["resourceSpans"].is_array() || (traced && spans) || flat
}

/// What a record holds.
pub(super) fn read(record: &Value) -> Vec<Result<Found, String>> {
    let Some(resources) = record["resourceSpans"].as_array() else {
        return of_span(&Span::of(record));
    };
    let scopes = resources.iter().flat_map(|resource| {
        let lists = [&resource["scopeSpans"], &resource["instrumentationLibrarySpans"]];
        lists.into_iter().filter_map(Value::as_array).flatten()
    });
    let spans = scopes.filter_map(|scope| scope["spans"].as_array()).flatten();
    spans.flat_map(|span| of_span(&Span::of(span))).collect()
}

impl Span {
    fn of(record: &Value) -> Self {
        let ids = if record["context"].is_object() { &record["context"] } else { record };
        let attributes = ["attributes", "SpanAttributes"].into_iter().find_map(|n| record.get(n));
        let events = record["events"].as_array().into_iter().flatten().map(|event| {
            let at = time_of(event, &["timeUnixNano", "timestamp", "time"]).unwrap_or(0);
            let name = text(event, &["name"]).unwrap_or_default();
            (name, attributes_of(event.get("attributes")), at)
        });
        let failed = record["status"]["code"] == 2
            || record["status"]["code"] == "STATUS_CODE_ERROR"
            || record["status"]["status_code"] == "ERROR";
        let said = || text(&record["status"], &["message", "description"]).unwrap_or_default();
        Self {
            id: text(ids, &["spanId", "span_id", "SpanId"]),
            trace: text(ids, &["traceId", "trace_id", "TraceId"]),
            start: time_of(record, &["startTimeUnixNano", "start_time", "startTime", "Timestamp"])
                .unwrap_or(0),
            attributes: attributes_of(attributes),
            events: events.collect(),
            error: failed.then(said),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.attributes.get(name).and_then(Value::as_str).map(Into::into)
    }

    /// An attribute of the span, or of the event that holds what was said.
    fn said(&self, name: &str) -> Option<&Value> {
        let details = self.events.iter().filter(|(event, ..)| {
            event == "gen_ai.client.inference.operation.details"
                || event.starts_with("gen_ai.content.")
        });
        let places = [&self.attributes].into_iter().chain(details.map(|(_, found, _)| found));
        places.filter_map(|place| place.get(name)).find(|value| !value.is_null())
    }

    /// What the model saw, in the newest notation that the span has.
    fn input(&self) -> Result<Option<Vec<Message>>, String> {
        let system = self.said("gen_ai.system_instructions").map(content::instructions);
        let system = system.transpose()?.flatten();
        let input = self.said("gen_ai.input.messages").or_else(|| self.said("gen_ai.prompt"));
        let said = match input {
            Some(input) => content::messages(input)?,
            None => {
                let mut each = self.numbered("gen_ai.prompt.");
                each.extend(self.events.iter().filter_map(|(name, body, _)| {
                    let role = SAID.iter().find(|(event, _)| event == name)?.1;
                    Some(of_event(body, role))
                }));
                content::messages(&Value::Array(each))?
            }
        };
        Ok((!said.is_empty()).then(|| system.into_iter().chain(said).collect()))
    }

    fn output(&self) -> Result<Option<Message>, String> {
        let output = self.said("gen_ai.output.messages").or_else(|| self.said("gen_ai.completion"));
        if let Some(output) = output {
            return content::reply(output).map(Some);
        }
        let mut each = self.numbered("gen_ai.completion.");
        each.extend(
            self.events
                .iter()
                .filter(|(name, ..)| name == "gen_ai.choice")
                .map(|(_, body, _)| of_event(&message_of(body), "assistant")),
        );
        if each.is_empty() { Ok(None) } else { content::reply(&Value::Array(each)).map(Some) }
    }

    /// Messages as `prefix.0.role`, `prefix.0.content`, `prefix.0.tool_calls.0.name`.
    fn numbered(&self, prefix: &str) -> Vec<Value> {
        let mut found = Vec::new();
        while self.attributes.keys().any(|k| k.starts_with(&format!("{prefix}{}.", found.len()))) {
            let own = format!("{prefix}{}.", found.len());
            let at = |name: &str| self.attributes.get(&format!("{own}{name}"));
            let mut message = json!({
                "role": at("role").unwrap_or(&json!("assistant")), "content": at("content"),
                "tool_call_id": at("tool_call_id"),
            });
            let mut calls = Vec::new();
            while let Some(name) = at(&format!("tool_calls.{}.name", calls.len())) {
                let of = |field: &str| at(&format!("tool_calls.{}.{field}", calls.len()));
                calls.push(json!({ "id": of("id"), "name": name, "arguments": of("arguments") }));
            }
            message["tool_calls"] = calls.into();
            found.push(message);
        }
        found
    }
}

/// Attributes as a map, whichever way they are written.
fn attributes_of(attributes: Option<&Value>) -> Map<String, Value> {
    match attributes {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::Array(pairs)) => {
            let pair = |pair: &Value| Some((pair["key"].as_str()?.into(), plain(&pair["value"])));
            pairs.iter().filter_map(pair).collect()
        }
        _ => Map::new(),
    }
}

/// A value of OTLP, which says its kind, as JSON.
fn plain(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|kinds| kinds.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => {
            inner.as_str().and_then(|t| t.parse::<i64>().ok()).map_or(inner.clone(), Into::into)
        }
        "arrayValue" => inner["values"].as_array().into_iter().flatten().map(plain).collect(),
        "kvlistValue" => Value::Object(attributes_of(inner.get("values"))),
        _ => inner.clone(),
    }
}

fn of_event(body: &Map<String, Value>, role: &str) -> Value {
    let mut message: Map<String, Value> =
        body.iter().map(|(name, value)| (name.clone(), unpacked(value).into_owned())).collect();
    message.entry("role").or_insert_with(|| role.into());
    if let Some(text) = message.get("content").filter(|c| c.is_object()).map(Value::to_string) {
        message.insert("content".into(), text.into());
    }
    Value::Object(message)
}

/// A choice holds its message, or is one.
fn message_of(choice: &Map<String, Value>) -> Map<String, Value> {
    let inner = choice.get("message").map(|message| unpacked(message).into_owned());
    inner.and_then(|message| message.as_object().cloned()).unwrap_or_else(|| choice.clone())
}

fn of_span(span: &Span) -> Vec<Result<Found, String>> {
    let scores = span.events.iter().filter(|(name, ..)| name == "gen_ai.evaluation.result");
    let scores = scores.filter_map(|(_, found, at)| {
        let (value, success) = score(found.get("gen_ai.evaluation.score.value")?);
        Some(Ok(Found::Score(Score {
            call: span.id.clone(),
            trace: span.trace.clone(),
            session: None,
            name: text(&Value::Object(found.clone()), &["gen_ai.evaluation.name"])?,
            value: value?,
            success,
            at: *at,
        })))
    });
    let operation = span.text("gen_ai.operation.name");
    let is_call = match operation.as_deref() {
        Some(operation) => CALLS.contains(&operation),
        None => {
            span.said("gen_ai.output.messages").is_some()
                || !span.numbered("gen_ai.completion.").is_empty()
        }
    };
    let call = is_call.then(|| call(span));
    call.into_iter().chain(scores).collect()
}

fn call(span: &Span) -> Result<Found, String> {
    let id = span.id.as_deref().unwrap_or("?");
    let located = |e: String| format!("span {id}: {e}");
    if let Some(error) = &span.error {
        return Err(located(format!("the call failed: {error}")));
    }
    let response = span.text("gen_ai.response.id");
    let said = (span.input().map_err(located)?, span.output().map_err(located)?);
    let (Some(messages), Some(reply)) = said else {
        let reason = "it holds no messages; switch the recording of message content on in the instrumentation";
        return Ok(Found::Bare(Bare { response, reason: located(reason.into()) }));
    };
    let mut call = Call::of(messages, reply);
    let tools = span.said("gen_ai.tool.definitions").unwrap_or(&Value::Null);
    call.tools = content::tools(tools).map_err(located)?;
    call.id.clone_from(&span.id);
    call.trace.clone_from(&span.trace);
    call.response = response;
    call.session = span.text("gen_ai.conversation.id");
    call.at = span.start;
    call.model = span.text("gen_ai.response.model").or_else(|| span.text("gen_ai.request.model"));
    Ok(Found::Call(call.into()))
}
