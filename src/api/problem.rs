//! Errors as problem+json (RFC 9457): what is wrong, and what to do.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::store::StoreError;

/// What is wrong, and what to do.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the title says what kind it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// HTTP status.
    status: u16,
    /// What is wrong.
    detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Fields that are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

/// A field that is wrong.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct FieldError {
    /// Where, as in `algorithm.futures`; empty for the whole.
    pub path: String,
    /// The same as a JSON pointer.
    pub pointer: String,
    /// Why.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The line in the text that was sent, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            remedy: None,
            errors: Vec::new(),
        }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).remedy("see /docs for what this route takes")
    }

    pub(super) fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what} {id}"))
            .remedy("compare it with what the service lists; /docs says where each kind is listed")
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(super) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(super) fn late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the request took longer than 30 s")
            .remedy("ask for a smaller page, and check the database's load")
    }

    /// An answer of ours whose body did not come to its end.
    pub(super) fn broken_off() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer broke off")
    }

    pub(super) fn with_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(status, detail)
    }

    /// What is wrong, and what to do.
    pub(super) fn said(&self) -> (&str, Option<&str>) {
        (&self.detail, self.remedy.as_deref())
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// What is wrong and what to do, for a page.
    pub(super) fn sentence(&self) -> String {
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        format!("{}{}", self.detail, remedy.unwrap_or_default())
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        // `Json` sets its own content type; the problem's must win.
        let mut response = (status, Json(self)).into_response();
        let kind = header::HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        problem.into_response()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request failed at the database");
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "the database did not answer")
            .remedy("try again; see /readyz and the log")
    }
}

pub(super) async fn no_such_route(uri: axum::http::Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
        .remedy("see /openapi.yaml for what there is")
}

pub(super) async fn no_such_method(method: axum::http::Method, uri: axum::http::Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).remedy("see /openapi.yaml")
}

pub(super) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this is a bug in nlac")
        .remedy("please report it with the log")
        .into()
}
