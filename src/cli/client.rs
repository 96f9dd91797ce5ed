//! A client of the REST API, for the command line and the demo.

use std::time::Duration;

use serde_json::Value;

use super::Failure;
use crate::{
    domain::ids::JobId,
    net::{Client, NetError},
};

const DEADLINE: Duration = Duration::from_secs(35);
const DOWNLOAD: Duration = Duration::from_secs(600);

/// A client of one service.
pub struct Api {
    http: Client,
}

impl Api {
    /// Of the service at a URL.
    pub fn new(server: &str) -> Result<Self, Failure> {
        Ok(Self { http: Client::new(server)? })
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.http.get(path, DEADLINE).await.map_err(|e| self.explain(e))
    }

    /// GET, the body as it is.
    pub async fn get_bytes(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.http.get_bytes(path, DOWNLOAD).await.map_err(|e| self.explain(e))
    }

    /// POST.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.http.post(path, body, DEADLINE).await.map_err(|e| self.explain(e))
    }

    /// POST of lines of JSON.
    pub async fn post_lines(&self, path: &str, lines: String) -> Result<Value, Failure> {
        let posted = self.http.post_lines(path, lines, DEADLINE).await;
        posted.map_err(|e| self.explain(e))
    }

    /// Submits a job once under a key.
    pub async fn submit(&self, spec: &Value, key: &str) -> Result<Value, Failure> {
        let header = ("idempotency-key", key);
        let posted = self.http.post_with("/v1/jobs", spec, &[header], DEADLINE).await;
        posted.map_err(|e| self.explain(e))
    }

    /// Events of a job after one of them.
    pub async fn events(&self, job: JobId, after: i64) -> Result<Vec<Value>, Failure> {
        let page = self.get(&format!("/v1/jobs/{job}/events?after={after}&limit=200")).await?;
        Ok(page["data"].as_array().cloned().unwrap_or_default())
    }

    /// One sentence, with the remedy that the service names.
    fn explain(&self, error: NetError) -> Failure {
        match error {
            NetError::Connect { .. } => format!(
                "no service at {}: start one with `nlac serve`, or name it with --server",
                self.http.base()
            )
            .into(),
            NetError::Status { status, body, .. } => {
                let problem: Value = serde_json::from_str(&body).unwrap_or_default();
                match (problem["detail"].as_str(), problem["remedy"].as_str()) {
                    (Some(detail), Some(remedy)) => format!("{detail}; {remedy}").into(),
                    (Some(detail), None) => detail.to_owned().into(),
                    _ => format!("the service answered {status}: {body}").into(),
                }
            }
            other => other.into(),
        }
    }
}
