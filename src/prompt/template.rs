//! One prompt file: front matter in YAML between `---` lines, then a minijinja body.

use minijinja::{Environment, UndefinedBehavior, value::Serde};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::reply::Replies;
use crate::experience::{context::Context, message::Message};

/// How much of the conversation a part sees before its own message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Nothing.
    None,
    /// Everything before the action.
    State,
    /// That and the action.
    StateAction,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    role: String,
    context: Scope,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    variables: Vec<String>,
    #[serde(default)]
    reply: ReplyForm,
}

/// What a reply must look like; regular expressions over the whole text.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyForm {
    /// Of a prediction, with the groups `next` and `end`.
    #[serde(default)]
    pub prediction: Option<String>,
    /// Of how a prediction names its end and its reward, with the group `reward`.
    #[serde(default)]
    pub conclusion: Option<String>,
    /// Of a text that reasons before it concludes, with the group `reasoning`.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Of a future that ends well.
    #[serde(default)]
    pub success: Option<String>,
    /// Of a future that ends badly.
    #[serde(default)]
    pub failure: Option<String>,
    /// Of an evaluator's approval.
    #[serde(default)]
    pub yes: Option<String>,
    /// Of an evaluator's rejection.
    #[serde(default)]
    pub no: Option<String>,
}

/// Why a prompt cannot be loaded or rendered.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// There is no such set.
    #[error("there is no prompt set {name:?}; there are {}", known.join(", "))]
    UnknownSet {
        /// The name asked for.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A set lacks a file.
    #[error("prompts/{0} is missing")]
    Missing(String),
    /// A file is not what it should be.
    #[error("prompts/{file}: {reason}")]
    Invalid {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A template was given too much, too little, or what it cannot use.
    #[error("prompts/{file} cannot be rendered: {reason}")]
    Render {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The chat template writes a conversation with a reply differently than the prompt and the reply.
    #[error("the chat template does not continue a prompt by its reply")]
    Discontinuous,
    /// The tokenizer or the chat template refused.
    #[error(transparent)]
    Encode(#[from] nlac_chat::ChatError),
}

/// A parsed prompt file.
#[derive(Debug, Clone)]
pub struct Template {
    file: String,
    hash: String,
    scope: Scope,
    system: Option<String>,
    variables: Vec<String>,
    body: Option<Environment<'static>>,
    replies: Replies,
}

impl Template {
    pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Self, PromptError> {
        let invalid = |reason: String| PromptError::Invalid { file: file.into(), reason };
        let text = std::str::from_utf8(bytes).map_err(|e| invalid(e.to_string()))?;
        let (front, body) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .ok_or_else(|| invalid("it must begin with front matter between --- lines".into()))?;
        let front: FrontMatter =
            serde_yaml_ng::from_str(front).map_err(|e| invalid(e.to_string()))?;
        if !file.ends_with(&format!("/{}.md", front.role)) {
            return Err(invalid(format!("role {:?} does not match the file's name", front.role)));
        }
        let body = body.trim();
        let body = if body.is_empty() {
            None
        } else {
            let mut environment = Environment::new();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            environment
                .add_template_owned("body", body.to_owned())
                .map_err(|e| invalid(e.to_string()))?;
            let template = environment.get_template("body").map_err(|e| invalid(e.to_string()))?;
            let mut used: Vec<_> = template.undeclared_variables(false).into_iter().collect();
            used.sort();
            let mut declared = front.variables.clone();
            declared.sort();
            if used != declared {
                let reason = format!("it declares the variables {declared:?} but uses {used:?}");
                return Err(invalid(reason));
            }
            Some(environment)
        };
        Ok(Self {
            file: file.into(),
            hash: content_hash(bytes),
            scope: front.context,
            system: front.system,
            variables: front.variables,
            body,
            replies: Replies::compile(&front.reply).map_err(|e| invalid(e.to_string()))?,
        })
    }

    /// Content hash of the file, hex.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub(super) const fn replies(&self) -> &Replies {
        &self.replies
    }

    /// The prompt: as much of the conversation as the part may see, then its own message.
    ///
    /// # Errors
    /// A variable that is missing or not declared, or no action where the part needs one.
    pub fn render(
        &self,
        state: &Context,
        action: Option<&Message>,
        variables: &serde_json::Value,
    ) -> Result<Context, PromptError> {
        let refused = |reason: String| PromptError::Render { file: self.file.clone(), reason };
        let given = variables.as_object().into_iter().flat_map(|o| o.keys());
        if let Some(odd) = given.clone().find(|name| !self.variables.contains(name)) {
            return Err(refused(format!("{odd} is not among its variables")));
        }
        if let Some(lacking) = self.variables.iter().find(|v| !given.clone().any(|g| g == *v)) {
            return Err(refused(format!("{lacking} is missing")));
        }
        let mut messages: Vec<_> = self.system.iter().map(Message::system).collect();
        match (self.scope, action) {
            (Scope::None, _) => {}
            (Scope::State, _) => messages.extend_from_slice(state.messages()),
            (Scope::StateAction, Some(action)) => {
                messages.extend_from_slice(state.messages());
                messages.push(action.clone());
            }
            (Scope::StateAction, None) => return Err(refused("it needs an action".into())),
        }
        if let Some(body) = &self.body {
            let text = body
                .get_template("body")
                .and_then(|template| template.render(Serde(variables)))
                .map_err(|e| refused(e.to_string()))?;
            messages.push(Message::user(text.trim()));
        }
        Ok(match self.scope {
            Scope::None => Context::of(messages),
            Scope::State | Scope::StateAction => Context::new(messages, state.frame().clone()),
        })
    }
}

/// SHA-256, hex.
pub(super) fn content_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
