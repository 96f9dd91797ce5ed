//! Anthropic's Messages API: requests with their responses.

use serde_json::Value;

use super::{
    calls::Call,
    content,
    openai::{beside, sides},
    reader::Found,
};
use crate::experience::message::{Message, Speaker};

/// What a record holds.
pub(super) fn read(record: &Value) -> Vec<Result<Found, String>> {
    vec![call(record).map(|call| Found::Call(call.into()))]
}

fn call(record: &Value) -> Result<Call, String> {
    let (request, response) = sides(record)?;
    let said = content::messages(request.get("messages").ok_or("its request has no messages")?)?;
    let instructions = content::instructions(&request["system"])?;
    // Some clients put instructions among the messages; the model sees them with the others.
    let (inner, said): (Vec<Message>, Vec<_>) =
        said.into_iter().partition(|message| message.role == Speaker::System);
    let messages = instructions.into_iter().chain(inner).chain(said).collect();
    let mut call = Call::of(messages, content::reply(&response)?);
    call.tools = content::tools(&request["tools"])?;
    beside(&mut call, record, &request, &response);
    Ok(call)
}
