//! Errors as problem+json (RFC 9457): what is wrong, and what to do.

use axum::{
    Json,
    http::{Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

pub use super::problem_code::ProblemCode;
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
    /// What kind of problem it is, in a word that stays the same between versions.
    #[schema(value_type = String, example = "not_found")]
    code: ProblemCode,
    /// What is wrong.
    detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Fields that are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    /// Methods for the header `Allow`, where the router does not know them.
    #[serde(skip)]
    allow: Option<Allow>,
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

/// What a path takes whose route takes more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Allow {
    /// What is read.
    Read,
    /// What is done.
    Post,
}

impl Allow {
    const fn methods(self) -> &'static str {
        match self {
            Self::Read => "GET,HEAD",
            Self::Post => "POST",
        }
    }
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            code: status.into(),
            detail: detail.into(),
            remedy: None,
            errors: Vec::new(),
            allow: None,
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

    /// A version whose files the retention rule deleted.
    pub(super) fn expired(name: &str) -> Self {
        Self::conflict(format!("the files of {name} are deleted"))
            .remedy("take a version that is kept; --keep-versions says how many are")
    }

    pub(super) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(super) fn unavailable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the database did not answer")
            .remedy("try again; see /readyz and the log")
    }

    pub(super) fn late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the request took longer than 30 s")
            .remedy("ask for a smaller page, and check the database's load")
    }

    /// A path that does not take a method, though its route does.
    pub(super) fn not_allowed(method: &Method, uri: &Uri, allow: Allow) -> Self {
        Self { allow: Some(allow), ..no_such_method_at(method, uri) }
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

    /// A code of its own, where the status alone does not tell what is wrong.
    pub(super) fn code(mut self, code: ProblemCode) -> Self {
        self.code = code;
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
        let (status, allow) = (self.status(), self.allow);
        // `Json` sets its own content type; the problem's must win.
        let mut response = (status, Json(self)).into_response();
        let kind = header::HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if let Some(allow) = allow {
            response
                .headers_mut()
                .insert(header::ALLOW, header::HeaderValue::from_static(allow.methods()));
        }
        response
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        problem.into_response()
    }
}

/// How it is answered that a text holds a NUL: in a document of a body, or in a query.
fn nul(error: &StoreError) -> Option<StatusCode> {
    let StoreError::Database(sqlx::Error::Database(error)) = error else { return None };
    match error.code()?.as_ref() {
        "22P05" => Some(StatusCode::UNPROCESSABLE_ENTITY),
        "22021" => Some(StatusCode::BAD_REQUEST),
        _ => None,
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if let Some(status) = nul(&error) {
            let detail = "a text holds a NUL character, which the database does not keep";
            return Self::new(status, detail).remedy("leave it out");
        }
        tracing::error!(%error, "a request failed at the database");
        Self::unavailable()
    }
}

pub(super) async fn no_such_route(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
        .remedy("see /openapi.yaml for what there is")
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    no_such_method_at(&method, &uri)
}

fn no_such_method_at(method: &Method, uri: &Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).remedy("see /openapi.yaml")
}

pub(super) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this is a bug in nlac")
        .remedy("please report it with the log")
        .into()
}
