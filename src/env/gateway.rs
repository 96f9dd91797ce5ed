//! The environment of jobs that learn from external agents. nlac cannot open an episode here: the agents do.

use std::sync::Arc;

use async_trait::async_trait;

use super::{EnvError, Environment, Session, Task};
use crate::{
    domain::{environment::Capabilities, spec::ToolFormat},
    experience::{action::Codec, codec::ToolCalls},
};

/// External agents act in environments of their own, and call the model through the gateway.
pub struct Gateway;

impl Gateway {
    /// What it can do: nothing can be played again, and each agent brings tools of its own or none.
    pub(super) const CAPABILITIES: Capabilities = Capabilities::NONE;
}

#[async_trait]
impl Environment for Gateway {
    fn name(&self) -> &'static str {
        "gateway"
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn codec(&self, format: ToolFormat) -> Arc<dyn Codec> {
        Arc::new(ToolCalls(format))
    }

    async fn open(&self, _: &Task, _: i64) -> Result<Box<dyn Session>, EnvError> {
        Err(EnvError::Permanent {
            environment: self.name().to_owned(),
            reason: "only agents open episodes, with POST /v1/jobs/{id}/episodes".into(),
        })
    }
}
