//! A model's own tokenizer and chat template, as Hugging Face files hold them: messages to token ids
//! and back.
//!
//! A prompt is rendered by the template and then encoded without any further special tokens, which is
//! what vLLM does with `messages`.

use std::path::Path;

use minijinja::{Environment, context, syntax::SyntaxConfig, value::Serde};
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The other side.
    User,
    /// The model.
    Assistant,
    /// A tool's answer.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// Why a tokenizer could not be loaded or used.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// A file is missing or unreadable.
    #[error("cannot read {path}: {source}; a model directory needs tokenizer.json and tokenizer_config.json")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is not valid: {reason}")]
    Invalid {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The directory has no chat template.
    #[error("{0} has no chat template: neither chat_template.jinja nor `chat_template` in tokenizer_config.json")]
    NoTemplate(String),
    /// The template refused the messages.
    #[error("the chat template failed: {0}")]
    Template(#[from] minijinja::Error),
    /// The tokenizer refused the text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
}

#[derive(Deserialize, Default)]
struct TokenizerConfig {
    chat_template: Option<String>,
    bos_token: Option<Special>,
    eos_token: Option<Special>,
}

/// A special token: plain, or with its properties.
#[derive(Deserialize)]
#[serde(untagged)]
enum Special {
    Plain(String),
    Full { content: String },
}

impl Special {
    fn into_text(self) -> String {
        match self {
            Self::Plain(text) | Self::Full { content: text } => text,
        }
    }
}

/// A tokenizer with its chat template.
pub struct ChatTokenizer {
    tokenizer: Tokenizer,
    templates: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTokenizer {
    /// Reads `tokenizer.json`, `tokenizer_config.json` and, where it exists, `chat_template.jinja`.
    ///
    /// # Errors
    /// A missing or malformed file, by its path.
    pub fn load(directory: &Path) -> Result<Self, ChatError> {
        let path = directory.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(|source| unreadable(&path, source))?;
        let tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| invalid(&path, &e))?;
        let path = directory.join("tokenizer_config.json");
        let text = std::fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        let config: TokenizerConfig =
            serde_json::from_str(&text).map_err(|e| invalid(&path, &e))?;
        let template = std::fs::read_to_string(directory.join("chat_template.jinja"))
            .ok()
            .or(config.chat_template)
            .ok_or_else(|| ChatError::NoTemplate(directory.display().to_string()))?;

        let mut templates = Environment::new();
        // As transformers renders templates.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        templates.set_syntax(syntax);
        templates.add_function("raise_exception", |message: String| -> Result<String, _> {
            Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, message))
        });
        templates.add_template_owned("chat", template)?;
        let text = |special: Option<Special>| special.map(Special::into_text).unwrap_or_default();
        Ok(Self { tokenizer, templates, bos: text(config.bos_token), eos: text(config.eos_token) })
    }

    /// The conversation as the model reads it; with the opening of a reply when one is asked for.
    ///
    /// # Errors
    /// What the template refuses.
    pub fn render(&self, messages: &[Message], generation_prompt: bool) -> Result<String, ChatError> {
        Ok(self.templates.get_template("chat")?.render(context! {
            messages => Serde(messages),
            add_generation_prompt => generation_prompt,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        })?)
    }

    /// The token ids of a conversation.
    ///
    /// # Errors
    /// What the template or the tokenizer refuses.
    pub fn encode_chat(
        &self,
        messages: &[Message],
        generation_prompt: bool,
    ) -> Result<Vec<u32>, ChatError> {
        self.encode(&self.render(messages, generation_prompt)?, false)
    }

    /// The token ids of a text.
    ///
    /// # Errors
    /// What the tokenizer refuses.
    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, ChatError> {
        self.tokenizer
            .encode_fast(text, add_special_tokens)
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|e| ChatError::Tokenizer(e.to_string()))
    }

    /// The text of token ids.
    ///
    /// # Errors
    /// What the tokenizer refuses.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, ChatError> {
        self.tokenizer
            .decode(ids, skip_special_tokens)
            .map_err(|e| ChatError::Tokenizer(e.to_string()))
    }

    /// The token that ends a text, if the tokenizer names one.
    #[must_use]
    pub fn eos_id(&self) -> Option<u32> {
        self.tokenizer.token_to_id(&self.eos)
    }

    /// One token as text, as it stands in the vocabulary.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> ChatError {
    ChatError::Read { path: path.display().to_string(), source }
}

fn invalid(path: &Path, reason: &dyn std::fmt::Display) -> ChatError {
    ChatError::Invalid { path: path.display().to_string(), reason: reason.to_string() }
}
