//! A running server of the service.

use super::{ids::ProcessId, text_enum::text_enum};

text_enum!(
    /// What a process does for the service.
    ProcessRole {
        /// Answers requests: the API, the dashboard and the gateway.
        Api = "api",
        /// Plans work, applies retention rules, checks engines, and delivers webhooks.
        Scheduler = "scheduler",
        /// Does the work of jobs.
        Worker = "worker",
    }
);

/// A process as it introduces itself.
#[derive(Debug, Clone)]
pub struct Process {
    /// Id; new at each start.
    pub id: ProcessId,
    /// What it does.
    pub roles: Vec<ProcessRole>,
    /// Name of its machine.
    pub host: String,
    /// Version of the program.
    pub version: &'static str,
}

impl Process {
    /// Whether it has one of these roles.
    #[must_use]
    pub fn is_any(&self, roles: &[ProcessRole]) -> bool {
        self.roles.iter().any(|role| roles.contains(role))
    }
}
