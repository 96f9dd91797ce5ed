//! Logged episodes: one JSON object per line, as chat transcripts are kept anywhere.
//!
//! ```json
//! {"id": "a1", "task": "refund", "messages": [{"role": "user", "content": "…"}, …], "return": 1.0}
//! ```
//! Every message of the assistant is an action, unless nobody has spoken before it; what the others say up to the next
//! one is what it led to. `tools` are those that the agent could call.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    chat::{ChatMessage, conversation},
    context::{Context, Frame, Tool},
    message::Message,
    turns::turns,
};

/// A logged episode that can be learnt from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedEpisode {
    /// The same key is the same episode.
    pub key: String,
    /// The task's name; empty where the log has none.
    pub task: String,
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// Tools that the agent could call.
    pub tools: Vec<Tool>,
    /// One reward per action.
    pub rewards: Vec<f64>,
    /// Solved or not, where the log says so.
    pub success: Option<bool>,
    /// It was cut by something that is not part of the task.
    pub truncated: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    task: Option<String>,
    messages: Vec<ChatMessage>,
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    rewards: Option<Vec<f64>>,
    #[serde(default, rename = "return")]
    total: Option<f64>,
    #[serde(default)]
    success: Option<bool>,
    #[serde(default)]
    truncated: bool,
}

impl LoggedEpisode {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it cannot be learnt from, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let line: Line = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let messages = conversation(line.messages.clone())?;
        let actions = turns(&Context::of(messages.clone())).len();
        if actions == 0 {
            return Err("there is no message of the assistant after one of the user or of a tool: no action was taken"
                .into());
        }
        let rewards = rewards(&line, actions)?;
        let key = line.id.filter(|id| !id.is_empty()).unwrap_or_else(|| hash(text));
        Ok(Self {
            key,
            task: line.task.unwrap_or_default(),
            messages,
            tools: line.tools,
            rewards,
            success: line.success,
            truncated: line.truncated,
        })
    }

    /// The conversation with its tools.
    #[must_use]
    pub fn whole(&self) -> Context {
        let frame = Frame { tools: self.tools.clone(), ..Frame::default() };
        Context::new(self.messages.clone(), frame.into())
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

fn hash(text: &str) -> String {
    Sha256::digest(text.trim()).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::LoggedEpisode;
    use crate::experience::{
        message::Speaker,
        turns::{Turn, turns},
    };

    #[test]
    fn tools_parallel_calls_and_several_messages_are_kept() {
        let line = r#"{"tools": [{"type": "function", "function": {"name": "find", "parameters": {}}}], "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "assistant", "content": "How may I help you?"},
            {"role": "user", "content": [{"type": "text", "text": "Where are orders 7 and 8?"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"order\": 7}"}},
                {"id": "c2", "type": "function", "function": {"name": "find", "arguments": {"order": 8}}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
            {"role": "tool", "tool_call_id": "c2", "content": "lost"},
            {"role": "user", "content": "Well?"},
            {"role": "assistant", "content": "One was shipped."},
            {"role": "assistant", "content": "The other is lost."}], "success": true}"#;
        let episode = LoggedEpisode::parse(line).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(episode.rewards, [0.0, 0.0, 1.0]);
        assert_eq!((episode.tools.len(), episode.key.len()), (1, 32));
        let steps = turns(&episode.whole());
        let shape = |step: &Turn| {
            (step.state.messages().len(), step.action.tool_calls().count(), step.observation.len())
        };
        assert_eq!(steps.iter().map(shape).collect::<Vec<_>>(), [(3, 2, 3), (7, 0, 0), (8, 0, 0)]);
        assert_eq!(steps[0].state.frame().tools, episode.tools);
        let calls: Vec<_> = steps[0].action.tool_calls().map(|c| c.line()).collect();
        assert_eq!(calls[1], "{\"arguments\":{\"order\":8},\"name\":\"find\"}");
        assert_eq!(steps[0].observation[1].role, Speaker::Tool);
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
            (r#"{"messages": [{"role": "assistant", "content": "b"}], "return": 1}"#.into(), "no action"),
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
