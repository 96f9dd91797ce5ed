//! Codes of problems: what kind of problem it is, in a word that stays the same between versions.

use axum::http::StatusCode;

use crate::domain::text_enum::text_enum;

text_enum!(
    /// What kind of problem it is.
    ProblemCode {
        /// The request cannot be read.
        BadRequest = "bad_request",
        /// A key is needed.
        SignInNeeded = "sign_in_needed",
        /// The key lacks the scope.
        NotAllowed = "not_allowed",
        /// There is no such thing.
        NotFound = "not_found",
        /// The path does not take the method.
        MethodNotAllowed = "method_not_allowed",
        /// It cannot be done as things stand.
        Conflict = "conflict",
        /// The body is too large.
        TooLarge = "too_large",
        /// The body is sent as something else.
        MediaType = "media_type",
        /// The request can be read, but it asks for what cannot be.
        Invalid = "invalid",
        /// The key asks too often.
        TooManyRequests = "too_many_requests",
        /// The engine failed.
        EngineFailed = "engine_failed",
        /// The service or its database is busy or away.
        Unavailable = "unavailable",
        /// There was no answer in time.
        Timeout = "timeout",
        /// A bug.
        Internal = "internal",
        /// A prompt set cannot have this name.
        PromptSetName = "prompt_set_name",
        /// A prompt set ships, and cannot be changed.
        PromptSetShips = "prompt_set_ships",
        /// A job under way names the prompt set.
        PromptSetInUse = "prompt_set_in_use",
        /// The prompt set was changed while a job was submitted.
        PromptSetChanged = "prompt_set_changed",
        /// Files of a prompt set cannot be used.
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
