//! The ReAct form of τ-bench: tools are described in the system prompt, and calls are written as text.

use nlac_tau_bench::{Call, ReactPrompts, Value};

use crate::experience::{
    action::{Action, Codec, Read, Reply, Unreadable, plain},
    context::Context,
    message::ToolCall,
};

/// What the agent does.
#[derive(Debug, PartialEq)]
pub(super) enum Deed {
    /// It calls a tool.
    Call(Call),
    /// It says something to the user.
    Say(String),
}

impl Deed {
    /// Reads what is left of a reply. As in the benchmark, a text that is not JSON is said to the user.
    fn of(text: &str) -> Result<Self, String> {
        let Ok(Value::Object(call)) = Value::parse(text) else {
            return Ok(Self::Say(text.to_owned()));
        };
        let name = call.get("name").and_then(Value::as_str).ok_or("has no name")?;
        let arguments = call.get("arguments").ok_or("has no arguments")?.clone();
        let call = Call::new(name, arguments).map_err(|error| format!("is wrong: {error}"))?;
        if call.name != ReactPrompts::RESPOND {
            return Ok(Self::Call(call));
        }
        let content = call.arguments.get("content").and_then(Value::as_str);
        Ok(Self::Say(content.ok_or("has no text `content`")?.to_owned()))
    }

    /// What a whole reply does.
    pub(super) fn written(reply: &str) -> Result<Self, String> {
        Self::of(&after_thought(Reply::whole(reply)).map_err(|unreadable| unreadable.why)?.key)
    }

    fn key(&self) -> String {
        match self {
            Self::Call(Call { name, arguments }) => {
                let arguments = Value::Object(arguments.clone()).dumps();
                ToolCall { id: String::new(), name: name.clone(), arguments }.line()
            }
            Self::Say(text) => text.trim().to_owned(),
        }
    }
}

/// What follows the last `Action:`; as in the benchmark, the whole reply if there is none.
fn after_thought(reply: Reply<'_>) -> Read {
    let action = |said: &str| said.rsplit("Action:").next().unwrap_or(said).trim().to_owned();
    plain(
        reply,
        |said| Some(action(said)).filter(|action| !action.is_empty()),
        "an action: it is empty",
    )
}

/// ReAct whose action is a call in JSON: calls that do the same are the same action.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReactCall;

impl Codec for ReactCall {
    fn read(&self, reply: Reply<'_>, _context: &Context) -> Read {
        let Action { message, key } = after_thought(reply)?;
        match Deed::of(&key) {
            Ok(deed) => Ok(Action { message, key: deed.key() }),
            Err(why) => Err(Unreadable { message, why: format!("the action {why}") }),
        }
    }
}
