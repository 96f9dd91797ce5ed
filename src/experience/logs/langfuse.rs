//! Langfuse: observations, traces and scores, as its API answers and as it exports them.

use serde_json::Value;

use super::{
    calls::{Call, Score},
    content,
    fields::{field, score, text, time_of, unpacked_field},
    reader::Found,
};

const TRACE: &[&str] = &["traceId", "trace_id"];
const SESSION: &[&str] = &["sessionId", "session_id"];
const TIME: &[&str] = &["startTime", "start_time", "timestamp", "createdAt", "created_at"];

fn is_observation(record: &Value) -> bool {
    const KINDS: &[&str] = &[
        "GENERATION",
        "SPAN",
        "EVENT",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    ];
    let named = text(record, TRACE).is_some();
    named && record["type"].as_str().is_some_and(|kind| KINDS.contains(&kind))
}

fn is_score(record: &Value) -> bool {
    let typed = field(record, &["dataType", "data_type"]).is_some();
    typed && record["name"].is_string() && record.get("value").is_some()
}

fn is_trace(record: &Value) -> bool {
    let project = field(record, &["projectId", "project_id"]).is_some();
    record["id"].is_string() && project && text(record, &["timestamp"]).is_some()
}

/// Whether a record is one of Langfuse.
pub(super) fn is(record: &Value) -> bool {
    is_observation(record) || is_score(record) || is_trace(record)
}

/// What a record holds. Only generations are calls; a trace only holds its scores.
pub(super) fn read(record: &Value) -> Vec<Result<Found, String>> {
    if is_score(record) {
        return judged(record).map(|score| Ok(Found::Score(score))).into_iter().collect();
    }
    if record["type"] == "GENERATION" {
        let id = text(record, &["id"]).unwrap_or_default();
        let call = call(record).map(|call| Found::Call(call.into()));
        return vec![call.map_err(|e| format!("observation {id}: {e}"))];
    }
    let scores = record["scores"].as_array().into_iter().flatten().filter(|s| is_score(s));
    scores.filter_map(judged).map(|score| Ok(Found::Score(score))).collect()
}

fn call(record: &Value) -> Result<Call, String> {
    if record["level"] == "ERROR" {
        let said = text(record, &["statusMessage", "status_message"]).unwrap_or_default();
        return Err(format!("the call failed: {said}"));
    }
    let input = unpacked_field(record, &["input"]).ok_or("it has no input")?;
    let output = unpacked_field(record, &["output"]).ok_or("it has no output")?;
    // The integrations write the messages alone, or the request with its tools.
    let said = field(&input, &["messages", "input"]).unwrap_or(&input);
    let instructions = field(&input, &["system", "instructions"]).unwrap_or(&Value::Null);
    let messages = content::instructions(instructions)?
        .into_iter()
        .chain(content::folded(content::messages(said)?))
        .collect();
    let mut call = Call::of(messages, content::reply(content_of(&output))?);
    let defined = unpacked_field(record, &["toolDefinitions", "tool_definitions"]);
    let tools = field(&input, &["tools", "functions"]).or(defined.as_deref());
    call.tools = content::tools(tools.unwrap_or(&Value::Null))?;
    call.id = text(record, &["id"]);
    call.trace = text(record, TRACE);
    call.session = text(record, SESSION);
    call.at = time_of(record, TIME).unwrap_or(0);
    call.model = text(record, &["providedModelName", "provided_model_name", "model"]);
    Ok(call)
}

/// The message in a response of any provider; the value itself where it is one.
pub(super) fn content_of(output: &Value) -> &Value {
    let choice = output["choices"].get(0).and_then(|choice| field(choice, &["message"]));
    let generation = output["generations"].get(0).map(|first| first.get(0).unwrap_or(first));
    let generation = generation.and_then(|one| field(one, &["message", "text"]));
    let inner = choice.or(generation).or_else(|| match output["output"].is_array() {
        true => Some(&output["output"]),
        false => None,
    });
    // A graph answers with all of its messages; the last one is the model's.
    let last = || output["messages"].as_array().and_then(|all| all.last());
    inner.or_else(last).unwrap_or(output)
}

/// A score; none where it is no number.
fn judged(record: &Value) -> Option<Score> {
    let (value, mut success) = score(&record["value"]);
    if field(record, &["dataType", "data_type"])? == "BOOLEAN" {
        success = value.map(|value| value != 0.0);
    }
    let subject = &record["subject"];
    let about = |kind: &str| (subject["kind"] == kind).then(|| text(subject, &["id"])).flatten();
    Some(Score {
        call: text(record, &["observationId", "observation_id"]).or_else(|| about("observation")),
        trace: text(record, TRACE).or_else(|| text(subject, TRACE)).or_else(|| about("trace")),
        session: text(record, SESSION).or_else(|| about("session")),
        name: text(record, &["name"])?,
        value: value?,
        success,
        at: time_of(record, &["timestamp", "updatedAt", "updated_at"]).unwrap_or(0),
    })
}
