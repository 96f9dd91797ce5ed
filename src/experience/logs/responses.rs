//! OpenAI's Responses API: requests with their responses. A request that names the response before it, or a conversation,
//! holds only what is new; the rest is put before it when the log is read.

use serde_json::Value;

use super::{
    calls::{After, Call},
    content,
    fields::text,
    openai::{beside, sides},
    reader::Found,
};

/// What a record holds.
pub(super) fn read(record: &Value) -> Vec<Result<Found, String>> {
    vec![call(record).map(|call| Found::Call(call.into()))]
}

fn call(record: &Value) -> Result<Call, String> {
    let (request, response) = sides(record)?;
    if let Some(status) = response["status"].as_str()
        && status != "completed"
        && status != "incomplete"
    {
        return Err(format!("the response is {status}"));
    }
    let input = request.get("input").ok_or("its request has no input")?;
    let said = content::folded(content::messages(input)?);
    let instructions = request.get("instructions").or_else(|| response.get("instructions"));
    let instructions = content::instructions(instructions.unwrap_or(&Value::Null))?;
    let reply = content::reply(&response["output"])?;
    let mut call = Call::of(instructions.into_iter().chain(said).collect(), reply);
    call.tools = content::tools(
        request.get("tools").or_else(|| response.get("tools")).unwrap_or(&Value::Null),
    )?;
    beside(&mut call, record, &request, &response);
    let named = |value: &Value| text(value, &["id"]).or_else(|| value.as_str().map(Into::into));
    let conversation = [&request["conversation"], &response["conversation"]].map(named);
    let conversation = conversation.into_iter().flatten().next();
    let before = [&*request, &*response].map(|side| text(side, &["previous_response_id"]));
    call.after = match (before.into_iter().flatten().next(), &conversation) {
        (Some(before), _) => After::Response(before),
        (None, Some(_)) => After::Conversation,
        (None, None) => After::Nothing,
    };
    call.session = call.session.or(conversation);
    Ok(call)
}
