//! The user or the oracle that an agent talks to, played by a registered chat engine.

use std::sync::Arc;

use super::EnvError;
use crate::{
    domain::{
        fault::Fault,
        generation::{FinishReason, Sampling},
    },
    engine::Frozen,
    experience::{context::Context, message::Message},
};

/// A chat model in the role of a user or an oracle.
#[derive(Clone)]
pub struct Partner {
    environment: &'static str,
    engine: Arc<dyn Frozen>,
    max_tokens: u32,
}

impl Partner {
    /// A partner whose answers have at most `max_tokens` tokens.
    #[must_use]
    pub const fn new(environment: &'static str, engine: Arc<dyn Frozen>, max_tokens: u32) -> Self {
        Self { environment, engine, max_tokens }
    }

    /// What it says next, at temperature 0.
    ///
    /// # Errors
    /// An engine that cannot be asked, or that gives no whole answer.
    pub async fn answer(&self, said: Vec<Message>, seed: i64) -> Result<String, EnvError> {
        let sampling = Sampling {
            temperature: 0.0,
            max_tokens: self.max_tokens,
            seed: self.engine.takes_seeds().then_some(seed),
        };
        let answer = self.engine.answer(&Context::of(said), sampling).await;
        let completion = answer.map_err(|error| self.failed(error.fault()))?;
        let text = completion.text.trim();
        if completion.finish_reason == FinishReason::Length || text.is_empty() {
            let most = self.max_tokens;
            return Err(self.failed(Fault::Fail(format!(
                "the chat engine gave no whole answer within {most} tokens"
            ))));
        }
        Ok(text.to_owned())
    }

    fn failed(&self, fault: Fault) -> EnvError {
        let environment = self.environment.to_owned();
        match fault {
            Fault::Away { peer, reason } => {
                EnvError::Away { environment, reason: format!("its {peer}: {reason}") }
            }
            Fault::Retry(reason) => EnvError::Transient { environment, reason },
            other => EnvError::Permanent { environment, reason: other.to_string() },
        }
    }
}
