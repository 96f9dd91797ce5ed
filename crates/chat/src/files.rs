//! What a Hugging Face model directory says of its tokenizer, besides `tokenizer.json`.

use std::path::Path;

use serde::Deserialize;

use super::ChatError;

#[derive(Deserialize, Default)]
pub struct TokenizerConfig {
    pub chat_template: Option<Template>,
    pub bos_token: Option<Special>,
    pub eos_token: Option<Special>,
}

/// One template, or several by name.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Template {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Deserialize)]
pub struct NamedTemplate {
    name: String,
    template: String,
}

impl Template {
    pub fn into_default(self) -> Option<String> {
        match self {
            Self::One(template) => Some(template),
            Self::Named(all) => {
                all.into_iter().find(|t| t.name == "default").map(|named| named.template)
            }
        }
    }
}

/// `generation_config.json` and `config.json` name the tokens that end a text alike.
#[derive(Deserialize, Default)]
struct EndTokens {
    eos_token_id: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

/// A special token: plain, or with its properties.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Special {
    Plain(String),
    Full { content: String },
}

impl Special {
    pub fn into_text(self) -> String {
        match self {
            Self::Plain(text) | Self::Full { content: text } => text,
        }
    }
}

/// What the model's configurations name; a model directory may lack them, but not hold broken ones.
pub fn end_tokens(directory: &Path) -> Result<Vec<u32>, ChatError> {
    let mut ids = Vec::new();
    for name in ["config.json", "generation_config.json"] {
        let path = directory.join(name);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let named: EndTokens = serde_json::from_str(&text).map_err(|e| invalid(&path, &e))?;
        match named.eos_token_id {
            None => {}
            Some(OneOrMany::One(id)) => ids.push(id),
            Some(OneOrMany::Many(many)) => ids.extend(many),
        }
    }
    Ok(ids)
}

pub fn unreadable(path: &Path, source: std::io::Error) -> ChatError {
    ChatError::Read { path: path.display().to_string(), source }
}

pub fn invalid(path: &Path, reason: &dyn std::fmt::Display) -> ChatError {
    ChatError::Invalid { path: path.display().to_string(), reason: reason.to_string() }
}
