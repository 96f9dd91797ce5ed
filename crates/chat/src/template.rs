//! The chat template of a model: which functions it may call, which variables it reads, and how it writes reasoning.

use std::collections::BTreeSet;

use minijinja::{Environment, Error, ErrorKind, Value, syntax::SyntaxConfig};
use time::{OffsetDateTime, format_description};

use crate::json;

/// What the service itself sets for a template.
const GIVEN: [&str; 6] =
    ["messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "strftime_now"];

/// The format in which a model writes its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    /// The template writes no reasoning.
    None,
    /// Between `<think>` and `</think>`: Qwen3, DeepSeek-R1 and many others.
    Tags,
    /// In the channel `analysis` of OpenAI's harmony format, whose marks are special tokens: gpt-oss.
    Channels,
}

impl Reasoning {
    /// A mark that ends the reasoning.
    pub(super) const fn mark(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Tags => Some("</think>"),
            Self::Channels => Some("<|channel|>"),
        }
    }

    /// Finds the format by the marks that a template writes. A template that only strips `</think>` from earlier replies
    /// writes no reasoning.
    pub(super) fn of(template: &str) -> Self {
        if template.contains("<|channel|>") {
            Self::Channels
        } else if template.contains("<think>") {
            Self::Tags
        } else {
            Self::None
        }
    }
}

/// An environment with one template, set up as transformers renders templates.
pub(super) fn environment(template: String) -> Result<Environment<'static>, Error> {
    let mut templates = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    templates.set_syntax(syntax);
    // Published templates call methods of Python's strings, lists and dictionaries.
    templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    templates.add_function("raise_exception", |message: String| -> Result<String, _> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    templates.add_filter("tojson", json::tojson);
    templates.add_template_owned("chat", template)?;
    Ok(templates)
}

/// The function that writes the time in a format of Python's `strftime`.
pub(super) fn strftime(now: OffsetDateTime) -> Value {
    let invalid = |reason: String| Error::new(ErrorKind::InvalidOperation, reason);
    Value::from_function(move |format: String| -> Result<String, Error> {
        let format = format_description::parse_strftime_owned(&format);
        let format = format.map_err(|e| invalid(e.to_string()))?;
        now.format(&format).map_err(|e| invalid(e.to_string()))
    })
}

/// The variables that a template reads beside those that the service gives it: `enable_thinking`, for example.
pub(super) fn switches(templates: &Environment<'_>) -> Result<BTreeSet<String>, Error> {
    let read = templates.get_template("chat")?.undeclared_variables(false);
    let is_function = |name: &String| templates.globals().any(|(known, _)| known == name);
    let switches = read.into_iter().filter(|name| !GIVEN.contains(&name.as_str()));
    Ok(switches.filter(|name| !is_function(name)).collect())
}
