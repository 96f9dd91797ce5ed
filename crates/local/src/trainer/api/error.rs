//! FastAPI's error bodies: `{"detail": …}`, a text, or a list for a body that does not validate.

use axum::{
    Json,
    extract::rejection::JsonRejection,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

/// An error as SkyRL words it.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    detail: String,
}

#[derive(Serialize)]
struct Body {
    detail: Detail,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Detail {
    Text(String),
    Invalid([Invalid; 1]),
}

#[derive(Serialize)]
struct Invalid {
    #[serde(rename = "type")]
    kind: &'static str,
    loc: [&'static str; 1],
    msg: String,
}

impl ApiError {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The body does not validate.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let detail = if self.status == StatusCode::UNPROCESSABLE_ENTITY {
            Detail::Invalid([Invalid { kind: "value_error", loc: ["body"], msg: self.detail }])
        } else {
            Detail::Text(self.detail)
        };
        (self.status, Json(Body { detail })).into_response()
    }
}
