//! LangSmith: runs and feedback. Only runs of models are calls; what stands around them orders them.

use serde_json::Value;

use super::{
    calls::{Call, Score},
    content,
    fields::{field, score, text, time_of, unpacked_field},
    langfuse::content_of,
    reader::Found,
};

/// Names of the conversation in a run's metadata.
const THREAD: &[&str] = &["thread_id", "session_id", "conversation_id"];

fn is_feedback(record: &Value) -> bool {
    record["key"].is_string()
        && (record.get("run_id").is_some() || record.get("trace_id").is_some())
}

/// Whether a record is one of LangSmith.
pub(super) fn is(record: &Value) -> bool {
    record["run_type"].is_string() || is_feedback(record)
}

/// What a record holds.
pub(super) fn read(record: &Value) -> Vec<Result<Found, String>> {
    if is_feedback(record) {
        return feedback(record).map(|score| Ok(Found::Score(score))).into_iter().collect();
    }
    let mut found: Vec<_> = stated(record).map(|score| Ok(Found::Score(score))).collect();
    if record["run_type"] == "llm" {
        let id = text(record, &["id"]).unwrap_or_default();
        let call = call(record).map(|call| Found::Call(call.into()));
        found.push(call.map_err(|e| format!("run {id}: {e}")));
    }
    found
}

fn call(record: &Value) -> Result<Call, String> {
    if let Some(error) = text(record, &["error"]) {
        return Err(format!("the call failed: {error}"));
    }
    let inputs = unpacked_field(record, &["inputs"]).ok_or("it has no inputs")?;
    let outputs = unpacked_field(record, &["outputs"]).ok_or("it has no outputs")?;
    let said = field(&inputs, &["messages", "input", "prompts"]);
    let said = said.ok_or("its inputs have no messages")?;
    // LangChain sends lists of conversations, of one each.
    let said = match said.as_array().map(Vec::as_slice) {
        Some([Value::Array(_)]) => &said[0],
        _ => said,
    };
    let instructions = field(&inputs, &["system", "instructions"]).unwrap_or(&Value::Null);
    let messages = content::instructions(instructions)?
        .into_iter()
        .chain(content::folded(content::messages(said)?))
        .collect();
    let mut call = Call::of(messages, content::reply(content_of(&outputs))?);
    let (extra, sent) = (&record["extra"], &record["extra"]["invocation_params"]);
    let tools = field(&inputs, &["tools"]).or_else(|| field(sent, &["tools", "functions"]));
    call.tools = content::tools(tools.unwrap_or(&Value::Null))?;
    call.id = text(record, &["id"]);
    call.trace = text(record, &["trace_id"]);
    call.session = text(&extra["metadata"], THREAD);
    call.at = time_of(record, &["start_time"]).unwrap_or(0);
    call.model = text(&outputs, &["model"])
        .or_else(|| text(&extra["metadata"], &["ls_model_name"]))
        .or_else(|| text(&inputs, &["model"]))
        .or_else(|| text(sent, &["model", "model_name"]));
    Ok(call)
}

/// A row of feedback; none where it is no number.
fn feedback(record: &Value) -> Option<Score> {
    let given = field(record, &["score"]).or_else(|| field(record, &["value"]))?;
    let (value, success) = score(given);
    Some(Score {
        call: text(record, &["run_id"]),
        trace: text(record, &["trace_id"]).or_else(|| text(record, &["run_id"])),
        session: None,
        name: text(record, &["key"])?,
        value: value?,
        success,
        at: time_of(record, &["modified_at", "created_at"]).unwrap_or(0),
    })
}

/// Feedback as a run states it: the mean of each key. Rows of feedback are newer.
fn stated(record: &Value) -> impl Iterator<Item = Score> {
    let stats = record["feedback_stats"].as_object().into_iter().flatten();
    stats.filter_map(|(key, stats)| {
        Some(Score {
            call: text(record, &["id"]),
            trace: text(record, &["trace_id"]),
            session: None,
            name: key.clone(),
            value: stats["avg"].as_f64()?,
            success: None,
            at: 0,
        })
    })
}
