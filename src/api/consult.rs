//! The critic as a service: what a version of a job says about any action in any state, while the caller waits.

use std::time::Duration;

use axum::{Json, extract::State, http::StatusCode};
use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AppState, extract::Valid, problem::Problem};
use crate::{
    domain::{
        annotation::Verdict,
        ids::{CheckpointId, JobId, TransitionId},
    },
    experience::{
        chat::{self, ChatMessage},
        consult::{
            Advice, Chance, Question, Said, State as Situation, Unanswered, Usage, Version, Wanted,
        },
        context::{Context, Frame, Tool},
        message::{Message, Speaker},
    },
};

/// Longest text of an action, bytes.
const MOST_BYTES: usize = 65_536;

/// Declares what a request says about an action; refinements say more than critiques do.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident { $($more:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, ToSchema, Validate)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Who is asked: the adapters of this checkpoint's version, each in the parts that the job's spec
            /// gives it.
            #[garde(skip)]
            checkpoint_id: Option<CheckpointId>,
            /// Or this job's promoted checkpoint.
            #[garde(skip)]
            job_id: Option<JobId>,
            /// Or this job's base model, in all parts that an adapter plays.
            #[garde(skip)]
            base_of: Option<JobId>,
            /// The state: what stood before this stored transition's action.
            #[garde(skip)]
            transition_id: Option<TransitionId>,
            /// Or a conversation in chat form, as the policy sees it: what the environment opens with, then
            /// actions (`assistant`) and what came back. Where it ends with an action, that is the one judged.
            #[garde(length(min = 1, max = 1000))]
            #[schema(min_items = 1, max_items = 1000)]
            messages: Option<Vec<ChatMessage>>,
            /// The action; the transition's own, or the last message, unless given.
            #[garde(inner(length(min = 1, max = MOST_BYTES)))]
            #[schema(min_length = 1, max_length = 65_536)]
            action: Option<String>,
            /// The same seed gives the same answer; 0 unless given.
            #[garde(inner(range(max = 9_007_199_254_740_991)))]
            #[schema(maximum = 9_007_199_254_740_991_u64)]
            seed: Option<u64>,
            /// Instead of a seed: choose as the job did when this iteration annotated the transition. The version
            /// that annotated says again what is stored; another says what it would have said by the same chance.
            #[garde(inner(range(min = 1)))]
            #[schema(minimum = 1)]
            iteration: Option<i32>,
            /// Seconds after which the answer is given up.
            #[garde(range(min = 1, max = 600))]
            #[schema(minimum = 1, maximum = 600)]
            #[serde(default = "a_minute")]
            timeout_s: u32,
            $($more)*
        }

        impl $name {
            fn question(self, wanted: Wanted) -> Result<(Question, Duration), Problem> {
                let deadline = Duration::from_secs(u64::from(self.timeout_s));
                let version = version(self.checkpoint_id, self.job_id, self.base_of)?;
                let chance = chance(self.seed, self.iteration, self.transition_id.is_some())?;
                let (state, action) = put(self.transition_id, self.messages, self.action)?;
                Ok((Question { version, state, action, chance, wanted }, deadline))
            }
        }
    };
}

request!(
    /// What is to be judged, and by whom.
    CritiqueRequest {}
);
request!(
    /// What is to be judged and refined, and by whom.
    RefinementRequest {
        /// Most rounds; as many as the job's spec has unless given. A Yes ends them early.
        #[garde(inner(range(min = 1, max = 8)))]
        #[schema(minimum = 1, maximum = 8)]
        rounds: Option<u32>,
    }
);

const fn a_minute() -> u32 {
    60
}

/// What the critic says about an action.
#[derive(Debug, Serialize, ToSchema)]
pub struct CritiqueAnswer {
    /// The job whose prompts, sampling and weights it is.
    job_id: JobId,
    /// The version whose adapters spoke; null where the base model did.
    version: Option<i32>,
    /// The action judged.
    action: String,
    /// The environment can read it.
    readable: bool,
    /// Optimal or not; `unparseable` where the critique holds no verdict.
    verdict: Verdict,
    /// Why, and what instead.
    critique: Said,
    /// What is predicted to come of the action.
    futures: Vec<Said>,
    /// What was read and written.
    usage: Usage,
}

/// Judges an action: its predicted futures, and the critic's verdict on them.
#[utoipa::path(
    post, path = "/v1/critiques", tag = "critic", operation_id = "create_critique",
    request_body = CritiqueRequest,
    responses(
        (status = 200, description = "The critique", body = CritiqueAnswer),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint, job or transition", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "It cannot be asked as things stand", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "A question without sense", content_type = "application/problem+json"),
        (status = 502, body = Problem, description = "The engine failed", content_type = "application/problem+json"),
        (status = 503, body = Problem, description = "Too many questions", content_type = "application/problem+json"),
        (status = 504, body = Problem, description = "No answer in time", content_type = "application/problem+json"),
    )
)]
pub(super) async fn critique(
    State(state): State<AppState>,
    Valid(request): Valid<CritiqueRequest>,
) -> Result<Json<CritiqueAnswer>, Problem> {
    let (question, deadline) = request.question(Wanted::Critique)?;
    let mut advice = ask(&state, &question, deadline).await?;
    let round = advice.rounds.pop().ok_or_else(|| Problem::from(nothing_said()))?;
    Ok(Json(CritiqueAnswer {
        job_id: advice.job_id,
        version: advice.version,
        action: advice.action,
        readable: advice.readable,
        verdict: round.verdict,
        critique: round.critique,
        futures: round.futures,
        usage: advice.usage,
    }))
}

/// Judges an action and refines it by the critique, round by round.
#[utoipa::path(
    post, path = "/v1/refinements", tag = "critic", operation_id = "create_refinement",
    request_body = RefinementRequest,
    responses(
        (status = 200, description = "Every round, and the action that came out", body = Advice),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such checkpoint, job or transition", content_type = "application/problem+json"),
        (status = 409, body = Problem, description = "It cannot be asked as things stand", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Not sent as JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "A question without sense", content_type = "application/problem+json"),
        (status = 502, body = Problem, description = "The engine failed", content_type = "application/problem+json"),
        (status = 503, body = Problem, description = "Too many questions", content_type = "application/problem+json"),
        (status = 504, body = Problem, description = "No answer in time", content_type = "application/problem+json"),
    )
)]
pub(super) async fn refinement(
    State(state): State<AppState>,
    Valid(request): Valid<RefinementRequest>,
) -> Result<Json<Advice>, Problem> {
    let wanted = Wanted::Refinement { rounds: request.rounds };
    let (question, deadline) = request.question(wanted)?;
    ask(&state, &question, deadline).await.map(Json)
}

async fn ask(state: &AppState, question: &Question, deadline: Duration) -> Result<Advice, Problem> {
    in_time(deadline, state.critic.advise(question)).await
}

/// An answer within a deadline.
pub(super) async fn in_time<T>(
    deadline: Duration,
    answering: impl Future<Output = Result<T, Unanswered>>,
) -> Result<T, Problem> {
    let asking = tokio::time::timeout(deadline, answering);
    let late = || {
        let seconds = deadline.as_secs();
        Problem::with_status(StatusCode::GATEWAY_TIMEOUT, format!("no answer within {seconds} s"))
            .remedy("raise timeout_s or ask for fewer rounds; GET /v1/engines tells whether the engine answers")
    };
    Ok(asking.await.map_err(|_| late())??)
}

impl From<Unanswered> for Problem {
    fn from(error: Unanswered) -> Self {
        let detail = error.to_string();
        match error {
            Unanswered::NotFound { what, id } => Self::not_found(what, id),
            Unanswered::Impossible { remedy, .. } => Self::unprocessable(detail).remedy(remedy),
            Unanswered::Conflict { remedy, .. } => Self::conflict(detail).remedy(remedy),
            Unanswered::Busy { .. } => Self::with_status(StatusCode::SERVICE_UNAVAILABLE, detail)
                .remedy("ask again in some seconds"),
            Unanswered::Failed(_) => {
                tracing::warn!(error = detail, "a question was not answered");
                Self::with_status(StatusCode::BAD_GATEWAY, detail)
                    .remedy("GET /v1/engines tells whether the engine answers; `nlac doctor` tries all that it must do")
            }
            Unanswered::Unavailable(_) => {
                tracing::error!(error = detail, "a question failed at the database");
                let detail = "the database did not answer";
                Self::with_status(StatusCode::SERVICE_UNAVAILABLE, detail)
                    .remedy("try again; see /readyz and the log")
            }
        }
    }
}

fn nothing_said() -> Unanswered {
    Unanswered::Failed(crate::domain::fault::Fault::Fail("nothing was said".into()))
}

/// Who is asked.
pub(super) fn version(
    checkpoint: Option<CheckpointId>,
    promoted_of: Option<JobId>,
    base_of: Option<JobId>,
) -> Result<Version, Problem> {
    match (checkpoint, promoted_of, base_of) {
        (Some(id), None, None) => Ok(Version::Checkpoint(id)),
        (None, Some(job), None) => Ok(Version::Promoted(job)),
        (None, None, Some(job)) => Ok(Version::Base(job)),
        _ => Err(Problem::unprocessable(
            "who is asked: give one of checkpoint_id, job_id and base_of",
        )
        .remedy("GET /v1/jobs/{id}/checkpoints lists a job's checkpoints")),
    }
}

fn chance(seed: Option<u64>, iteration: Option<i32>, stored: bool) -> Result<Chance, Problem> {
    match (seed, iteration) {
        (Some(_), Some(_)) => {
            Err(Problem::unprocessable("there are a seed and an iteration")
                .remedy("give one of them"))
        }
        (None, Some(_)) if !stored => {
            Err(Problem::unprocessable("iteration: only a stored transition was annotated")
                .remedy("give transition_id, or a seed instead"))
        }
        (None, Some(iteration)) => Ok(Chance::Annotation { iteration }),
        (seed, None) => Ok(Chance::Seed(seed.unwrap_or(0))),
    }
}

/// The state and the action, where it is given or the last thing said.
fn put(
    transition: Option<TransitionId>,
    messages: Option<Vec<ChatMessage>>,
    action: Option<String>,
) -> Result<(Situation, Option<Message>), Problem> {
    let action = action.map(|action| action.trim().to_owned());
    if action.as_ref().is_some_and(String::is_empty) {
        return Err(
            Problem::unprocessable("action: it is empty").remedy("say what is to be judged")
        );
    }
    let action = action.map(Message::assistant);
    match (transition, messages) {
        (Some(id), None) => Ok((Situation::Transition(id), action)),
        (None, Some(said)) => {
            let said = chat::conversation(said).map_err(Problem::unprocessable)?;
            let (state, action) = asked(said, action)?;
            Ok((Situation::Conversation(Context::of(state)), Some(action)))
        }
        _ => Err(Problem::unprocessable("the state: give one of transition_id and messages")
            .remedy("a stored transition by its id, or a conversation as chat messages")),
    }
}

/// A state that waits for an action.
pub(super) fn state_of(
    transition: Option<TransitionId>,
    messages: Option<Vec<ChatMessage>>,
    tools: Vec<Tool>,
) -> Result<Situation, Problem> {
    match (transition, messages) {
        (Some(id), None) if tools.is_empty() => Ok(Situation::Transition(id)),
        (None, Some(said)) => {
            let said = chat::conversation(said).map_err(Problem::unprocessable)?;
            if said.last().is_none_or(|message| message.role == Speaker::Assistant) {
                return Err(Problem::unprocessable("messages: they end with an action")
                    .remedy("end them with what the policy is to answer"));
            }
            let frame = Frame { tools, ..Frame::default() };
            Ok(Situation::Conversation(Context::new(said, frame.into())))
        }
        _ => Err(Problem::unprocessable("the state: give one of transition_id and messages")
            .remedy(
                "a stored transition by its id, or a conversation as chat messages with its tools",
            )),
    }
}

/// A conversation as a state and the action in it.
pub(super) fn asked(
    mut said: Vec<Message>,
    action: Option<Message>,
) -> Result<(Vec<Message>, Message), Problem> {
    let last = said.pop_if(|message| message.role == Speaker::Assistant);
    let action = match (action, last) {
        (Some(_), Some(_)) => {
            let detail = "there is an action, and messages end with another one";
            return Err(Problem::unprocessable(detail)
                .remedy("leave out action, or end messages with what was said before it"));
        }
        (None, None) => {
            return Err(Problem::unprocessable("there is no action to judge")
                .remedy("give action, or end messages with one of the assistant"));
        }
        (Some(action), None) => action,
        (None, Some(last)) => last,
    };
    if said.is_empty() {
        return Err(Problem::unprocessable("messages: there is no state before the action")
            .remedy("begin with what the environment says first"));
    }
    Ok((said, action))
}
