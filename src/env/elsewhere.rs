//! Environments that nlac cannot open an episode in: external agents act there, or logs have recorded what happened.

use std::sync::Arc;

use async_trait::async_trait;

use super::{EnvError, Environment, Session, Task};
use crate::{
    domain::{environment::Capabilities, spec::ToolFormat},
    experience::{action::Codec, codec::ToolCalls},
};

/// Where episodes come from, if not from nlac.
#[derive(Debug, Clone, Copy)]
pub enum Elsewhere {
    /// External agents act in environments of their own, and call the model through the gateway.
    Gateway,
    /// The job's datasets.
    Logs,
}

impl Elsewhere {
    /// What it can do: nothing can be played again, and each episode brings tools of its own or none.
    pub(super) const CAPABILITIES: Capabilities = Capabilities::NONE;
}

#[async_trait]
impl Environment for Elsewhere {
    fn name(&self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Logs => "logs",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn codec(&self, format: ToolFormat) -> Arc<dyn Codec> {
        Arc::new(ToolCalls(format))
    }

    async fn open(&self, _: &Task, _: i64) -> Result<Box<dyn Session>, EnvError> {
        let reason = match self {
            Self::Gateway => "only agents open episodes, with POST /v1/jobs/{id}/episodes",
            Self::Logs => "the job learns from its datasets alone",
        };
        Err(EnvError::Permanent { environment: self.name().to_owned(), reason: reason.into() })
    }
}
