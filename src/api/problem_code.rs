//! Codes of problems. They are stable between versions.

use axum::http::StatusCode;

use crate::domain::text_enum::text_enum;

text_enum!(
    /// Kind of a problem.
    ProblemCode {
        /// The request is malformed.
        BadRequest = "bad_request",
        /// An API key is required.
        SignInNeeded = "sign_in_needed",
        /// The key lacks the scope.
        NotAllowed = "not_allowed",
        /// The resource does not exist.
        NotFound = "not_found",
        /// The path does not support the method.
        MethodNotAllowed = "method_not_allowed",
        /// The current state does not allow the request.
        Conflict = "conflict",
        /// The body is too large.
        TooLarge = "too_large",
        /// The Content-Type is not supported.
        MediaType = "media_type",
        /// The request is well-formed but not valid.
        Invalid = "invalid",
        /// The key exceeds its rate limit.
        TooManyRequests = "too_many_requests",
        /// The engine failed.
        EngineFailed = "engine_failed",
        /// The service or its database is overloaded or unavailable.
        Unavailable = "unavailable",
        /// Timeout.
        Timeout = "timeout",
        /// A bug.
        Internal = "internal",
        /// A prompt set cannot have this name.
        PromptSetName = "prompt_set_name",
        /// The prompt set is built in and cannot be changed.
        PromptSetShips = "prompt_set_ships",
        /// An unfinished job uses the prompt set.
        PromptSetInUse = "prompt_set_in_use",
        /// The prompt set was changed while a job was submitted.
        PromptSetChanged = "prompt_set_changed",
        /// Files of a prompt set are invalid.
        PromptsUnusable = "prompts_unusable",
        /// A prompt cannot be rendered on this transition.
        PromptNotRendered = "prompt_not_rendered",
        /// An agent's episode has no step: the agent has not called the model.
        NoStep = "no_step",
    }
);

impl From<StatusCode> for ProblemCode {
    fn from(status: StatusCode) -> Self {
        match status {
            StatusCode::BAD_REQUEST => Self::BadRequest,
            StatusCode::UNAUTHORIZED => Self::SignInNeeded,
            StatusCode::FORBIDDEN => Self::NotAllowed,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::MediaType,
            StatusCode::UNPROCESSABLE_ENTITY => Self::Invalid,
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests,
            StatusCode::BAD_GATEWAY => Self::EngineFailed,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::GATEWAY_TIMEOUT => Self::Timeout,
            _ => Self::Internal,
        }
    }
}
