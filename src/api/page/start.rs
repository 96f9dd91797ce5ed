//! What a service without jobs offers: the example, logs, and an engine.

use askama::Template;

use crate::{api::examples, domain::ids::JobId};

/// The three ways to begin.
#[derive(Template)]
#[template(path = "start.html")]
pub(super) struct Start {
    /// The example's name, and its spec.
    example: &'static str,
    spec: String,
    /// Idempotency key of its submission.
    key: String,
}

impl Start {
    /// With the built-in example.
    pub fn new() -> Self {
        Self {
            example: examples::FIRST,
            spec: examples::spec(examples::FIRST).unwrap_or_default(),
            key: JobId::new().to_string(),
        }
    }
}
