//! Logged episodes: one JSON object per line, as chat transcripts are kept anywhere.
//!
//! ```json
//! {"id": "a1", "task": "refund", "messages": [{"role": "user", "content": "…"}, …], "return": 1.0}
//! ```
//! Every message of the assistant is an action; what the others say up to the next one is what it led
//! to. Tool calls and their results become text in the form that Hermes-style templates use.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::message::{Message, Speaker};

/// A logged episode that can be learnt from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedEpisode {
    /// The same key is the same episode.
    pub key: String,
    /// The task's name; empty where the log has none.
    pub task: String,
    /// The opening, then an action and what followed, in turns.
    pub messages: Vec<Message>,
    /// Messages before the first action.
    pub opening: usize,
    /// One reward per action.
    pub rewards: Vec<f64>,
    /// Solved or not, where the log says so.
    pub success: Option<bool>,
    /// It was cut by something that is not part of the task.
    pub truncated: bool,
}

/// What stands for the last observation where a log ends with an action.
const ENDED: &str = "(the episode ended)";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    task: Option<String>,
    messages: Vec<ChatMessage>,
    #[serde(default)]
    rewards: Option<Vec<f64>>,
    #[serde(default, rename = "return")]
    total: Option<f64>,
    #[serde(default)]
    success: Option<bool>,
    #[serde(default)]
    truncated: bool,
}

/// A chat message as APIs write it; fields that say nothing about the conversation are let be.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ChatMessage {
    /// `system`, `developer`, `user`, `assistant`, `tool` or `function`.
    role: String,
    /// What was said.
    #[serde(default)]
    content: Option<Content>,
    /// Tools that were called; they are read as text in the form that Hermes-style templates use.
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

/// What was said, whole or in parts.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ChatContent)]
pub enum Content {
    /// A text.
    Text(String),
    /// Parts, which must be text.
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = ChatPart)]
pub struct Part {
    /// Its text.
    #[serde(default)]
    text: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Which, and with what.
    function: Function,
}

/// A tool that is called.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = CalledFunction)]
pub struct Function {
    /// Its name.
    name: String,
    /// JSON, or a string of JSON.
    #[serde(default)]
    arguments: Value,
}

/// A conversation as APIs write it, as policies see it: what others say between two actions is one message.
///
/// # Errors
/// A message that cannot be read, two actions in a row, or instructions in the middle; in a sentence.
pub fn conversation(said: &[ChatMessage]) -> Result<Vec<Message>, String> {
    let mut messages: Vec<Message> = Vec::new();
    for (number, said) in said.iter().enumerate() {
        let message = said.message().map_err(|e| format!("messages[{number}]: {e}"))?;
        match messages.last_mut() {
            Some(last) if last.role == message.role && message.role == Speaker::Assistant => {
                return Err(format!("messages[{number}]: two actions follow each other"));
            }
            // Several results of tools, or several users, are one observation.
            Some(last) if last.role == message.role => {
                last.content = format!("{}\n{}", last.content, message.content);
            }
            _ => messages.push(message),
        }
    }
    let mut after_action = messages.iter().skip_while(|m| m.role != Speaker::Assistant);
    if after_action.any(|m| m.role == Speaker::System) {
        return Err("a system message stands after the first action".into());
    }
    Ok(messages)
}

impl LoggedEpisode {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it cannot be learnt from, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let line: Line = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut messages = conversation(&line.messages)?;
        let opening = messages.iter().position(|m| m.role == Speaker::Assistant);
        let opening = opening.ok_or("there is no message of the assistant: no action was taken")?;
        if opening == 0 {
            return Err("it begins with an action: there is no state before it".into());
        }
        if messages.last().is_some_and(|m| m.role == Speaker::Assistant) {
            messages.push(Message::user(ENDED));
        }
        let actions = (messages.len() - opening) / 2;
        let rewards = rewards(&line, actions)?;
        let key = line.id.filter(|id| !id.is_empty()).unwrap_or_else(|| hash(text));
        Ok(Self {
            key,
            task: line.task.unwrap_or_default(),
            messages,
            opening,
            rewards,
            success: line.success,
            truncated: line.truncated,
        })
    }

    /// Sum of the rewards.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.rewards.iter().sum()
    }
}

fn rewards(line: &Line, actions: usize) -> Result<Vec<f64>, String> {
    let last = |reward: f64| {
        let mut rewards = vec![0.0; actions];
        rewards[actions - 1] = reward;
        rewards
    };
    let rewards = match (&line.rewards, line.total, line.success) {
        (Some(_), Some(_), _) => {
            return Err("it has both rewards and return; give one of them".into());
        }
        (Some(rewards), None, _) if rewards.len() != actions => {
            return Err(format!("it has {} rewards for {actions} actions", rewards.len()));
        }
        (Some(rewards), None, _) => rewards.clone(),
        (None, Some(total), _) => last(total),
        (None, None, Some(success)) => last(f64::from(u8::from(success))),
        (None, None, None) => {
            return Err("it has no reward: give rewards, return or success".into());
        }
    };
    if rewards.iter().any(|reward| !reward.is_finite()) {
        return Err("a reward is not a finite number".into());
    }
    Ok(rewards)
}

impl ChatMessage {
    /// A message of nothing but text.
    pub(super) fn text(speaker: Speaker, content: String) -> Self {
        let role = match speaker {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        Self { role: role.into(), content: Some(Content::Text(content)), tool_calls: None }
    }

    fn message(&self) -> Result<Message, String> {
        let role = match self.role.as_str() {
            "system" | "developer" => Speaker::System,
            "user" | "tool" | "function" => Speaker::User,
            "assistant" => Speaker::Assistant,
            other => {
                return Err(format!("role {other:?} is none of system, user, assistant, tool"));
            }
        };
        let mut content = match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                let texts: Option<Vec<&str>> = parts.iter().map(|p| p.text.as_deref()).collect();
                texts.ok_or("a part of its content is not text")?.join("\n")
            }
        };
        if matches!(self.role.as_str(), "tool" | "function") {
            content = format!("<tool_response>\n{content}\n</tool_response>");
        }
        for call in self.tool_calls.iter().flatten() {
            // APIs write the arguments as a string of JSON; a template writes them as JSON.
            let arguments = match &call.function.arguments {
                Value::String(text) => {
                    serde_json::from_str(text).unwrap_or_else(|_| text.clone().into())
                }
                other => other.clone(),
            };
            let call = serde_json::json!({ "name": call.function.name, "arguments": arguments });
            let gap = if content.is_empty() { "" } else { "\n" };
            content = format!("{content}{gap}<tool_call>\n{call}\n</tool_call>");
        }
        if role == Speaker::Assistant && content.trim().is_empty() {
            return Err("an action without text and without a tool call".into());
        }
        Ok(Message { role, content })
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.trim()).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::LoggedEpisode;
    use crate::domain::message::{Message, Speaker};

    #[test]
    fn tools_become_text_and_turns_alternate() {
        let line = r#"{"messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Where is order 7?"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"order\": 7}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
            {"role": "user", "content": "Well?"},
            {"role": "assistant", "content": "It was shipped."}], "success": true}"#;
        let episode = LoggedEpisode::parse(line).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(episode.opening, 2);
        let roles: Vec<_> = episode.messages.iter().map(|m| m.role).collect();
        let (user, assistant) = (Speaker::User, Speaker::Assistant);
        assert_eq!(roles, [Speaker::System, user, assistant, user, assistant, user]);
        assert_eq!(
            episode.messages[2].content,
            "<tool_call>\n{\"arguments\":{\"order\":7},\"name\":\"find\"}\n</tool_call>"
        );
        assert_eq!(
            episode.messages[3],
            Message::user("<tool_response>\nshipped\n</tool_response>\nWell?")
        );
        assert_eq!(episode.rewards, [0.0, 1.0]);
        assert_eq!(episode.key.len(), 32);
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused_with_its_reason() {
        let turn = r#"{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}"#;
        for (line, reason) in [
            (format!(r#"{{"messages": [{turn}]}}"#), "no reward"),
            (format!(r#"{{"messages": [{turn}], "rewards": [1, 2]}}"#), "2 rewards for 1"),
            (format!(r#"{{"messages": [{turn}], "return": 1, "rewards": [1]}}"#), "both"),
            (format!(r#"{{"messages": [{turn}], "return": 1, "extra": 2}}"#), "unknown field"),
            (r#"{"messages": [], "return": 1}"#.into(), "no action"),
            (r#"{"messages": [{"role": "assistant", "content": "b"}], "return": 1}"#.into(), "no state"),
            (
                r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant"}], "return": 1}"#.into(),
                "without text",
            ),
            (
                r#"{"messages": [{"role": "bot", "content": "a"}], "return": 1}"#.into(),
                "messages[0]: role",
            ),
            ("{".into(), "EOF"),
        ] {
            let error = LoggedEpisode::parse(&line).err().unwrap_or_default();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
