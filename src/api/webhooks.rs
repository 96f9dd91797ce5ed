//! Webhooks: register URLs for events, and list deliveries.

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState,
    extract::{Id, Params, Valid, limit},
    idempotency::{self, Once},
    problem::Problem,
    view::{views, webhooks::DeliveryView},
};
use crate::{
    domain::{
        access::Actor,
        event::EventKind,
        ids::{JobId, WebhookId},
        webhook::Webhook,
    },
    store::{StoreError, jobs, webhooks},
};

/// Request for a webhook.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// URL for the POST requests.
    #[garde(length(max = 2000), pattern(r"^https?://[^\s/]+"), custom(without_password))]
    #[schema(
        max_length = 2000,
        pattern = r"^https?://[^\s/]+",
        example = "https://example.org/nlac"
    )]
    url: String,
    /// Kinds of events. The default is all.
    #[serde(default)]
    #[garde(skip)]
    #[schema(example = json!(["succeeded", "failed", "guard_tripped"]))]
    kinds: Vec<EventKind>,
    /// Only events of this job. The default is all jobs.
    #[serde(default)]
    #[garde(skip)]
    job_id: Option<JobId>,
}

/// A created webhook.
#[derive(Serialize, ToSchema)]
pub struct WebhookMade {
    /// Webhook.
    #[serde(flatten)]
    webhook: Webhook,
    /// Secret of the signatures (standardwebhooks.com). Only this answer has it.
    secret: String,
}

/// All webhooks.
#[derive(Serialize, ToSchema)]
pub struct WebhookList {
    /// Newest first.
    data: Vec<Webhook>,
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
pub struct DeliveryList {
    /// Newest first.
    data: Vec<DeliveryView>,
    /// Cursor of the next page: pass it as `before`. Null on the last page.
    next: Option<i64>,
}

/// Filters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeliveryQuery {
    /// Only deliveries of earlier events.
    before: Option<i64>,
    /// Rows per page: 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Creates a webhook: the service posts new events to a URL.
///
/// The service repeats a POST for up to one day until the answer is a success, so an event can arrive late or
/// twice. `webhook-id` identifies it. `webhook-signature` is made with the secret of this answer.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "jobs", operation_id = "create_webhook", request_body = NewWebhook,
    params(("Idempotency-Key" = Option<String>, Header, description = idempotency::ABOUT, min_length = 1, max_length = 255, pattern = "^[!-~]+$")),
    responses(
        (status = 200, description = "Made before with this idempotency key", body = WebhookMade),
        (status = 409, body = Problem, description = "The idempotency key was used for another request", content_type = "application/problem+json"),
        (status = 201, description = "Created; it gets events from now on", body = WebhookMade),
        (status = 400, body = Problem, description = "Not JSON", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such job", content_type = "application/problem+json"),
        (status = 413, body = Problem, description = "Too large", content_type = "application/problem+json"),
        (status = 415, body = Problem, description = "Content-Type is not JSON", content_type = "application/problem+json"),
        (status = 422, body = Problem, description = "Invalid webhook", content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    Extension(actor): Extension<Actor>,
    once: Once<Valid<NewWebhook>>,
) -> Result<Response, Problem> {
    let mut once = once.of("create_webhook");
    let again = async |id: String| {
        let found = webhooks::list(&mut *state.store.acquire().await?).await?;
        let webhook = found.into_iter().find(|webhook| webhook.id.to_string() == id);
        let webhook = webhook.ok_or_else(|| Problem::not_found("webhook", id))?;
        let secret = state.service_key.webhook(webhook.id);
        Ok(Json(WebhookMade { webhook, secret }).into_response())
    };
    let earlier = once.earlier(&mut *state.store.acquire().await?, &actor).await?;
    if let Some(earlier) = earlier {
        return again(earlier).await;
    }
    let Valid(NewWebhook { url, kinds, job_id }) = once.body()?;
    (state.webhook_url)(&url).map_err(|why| {
        Problem::unprocessable(format!("url: {why}")).remedy("give a public address")
    })?;
    let webhook =
        Webhook { id: WebhookId::new(), url, kinds, job_id, created_at: state.clock.now() };
    let mut tx = state.store.begin().await?;
    if let Some(job) = job_id
        && jobs::get(&mut tx, job).await?.is_none()
    {
        return Err(Problem::not_found("job", job));
    }
    if let Some(earlier) = once.keep(&mut tx, &actor, webhook.id).await? {
        drop(tx);
        return again(earlier).await;
    }
    webhooks::insert(&mut tx, &webhook).await?;
    tx.commit().await.map_err(StoreError::from)?;
    let secret = state.service_key.webhook(webhook.id);
    let location = [(header::LOCATION, format!("/v1/webhooks/{}", webhook.id))];
    Ok((StatusCode::CREATED, location, Json(WebhookMade { webhook, secret })).into_response())
}

fn without_password(url: &str, _: &()) -> garde::Result {
    match Url::parse(url) {
        Ok(url) if url.username().is_empty() && url.password().is_none() => Ok(()),
        Ok(_) => Err(garde::Error::new(
            "a URL must not contain a user or a password; messages are signed",
        )),
        Err(error) => Err(garde::Error::new(format!("not a URL: {error}"))),
    }
}

fn origin(url: &str) -> String {
    Url::parse(url)
        .map_or_else(|_| "…".into(), |url| format!("{}/…", url.origin().ascii_serialization()))
}

/// Lists webhooks. It shows only the origin of each URL, because the rest may be secret.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "jobs", operation_id = "list_webhooks",
    responses((status = 200, description = "All webhooks", body = WebhookList))
)]
pub(super) async fn list(State(state): State<AppState>) -> Result<Json<WebhookList>, Problem> {
    let mut data = webhooks::list(&mut *state.store.acquire().await?).await?;
    // Many receivers use a secret path, which not everyone who may list webhooks needs to know.
    for webhook in &mut data {
        webhook.url = origin(&webhook.url);
    }
    Ok(Json(WebhookList { data }))
}

/// Deletes the webhook and its deliveries.
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}", tag = "jobs", operation_id = "delete_webhook",
    params(("id" = WebhookId, Path)),
    responses(
        (status = 204, description = "Deleted, with its deliveries"),
        (status = 400, body = Problem, description = "Not an id", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such webhook", content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    Id(id): Id<WebhookId>,
) -> Result<StatusCode, Problem> {
    let there = webhooks::delete(&mut *state.store.acquire().await?, id).await?;
    there.then_some(StatusCode::NO_CONTENT).ok_or_else(|| Problem::not_found("webhook", id))
}

/// Lists the deliveries of a webhook, newest event first.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/deliveries", tag = "jobs", operation_id = "list_deliveries",
    params(("id" = WebhookId, Path), DeliveryQuery),
    responses(
        (status = 200, description = "A page of deliveries", body = DeliveryList),
        (status = 400, body = Problem, description = "Malformed query", content_type = "application/problem+json"),
        (status = 404, body = Problem, description = "No such webhook", content_type = "application/problem+json"),
    )
)]
pub(super) async fn deliveries(
    State(state): State<AppState>,
    Id(id): Id<WebhookId>,
    Params(query): Params<DeliveryQuery>,
) -> Result<Json<DeliveryList>, Problem> {
    let limit = limit(query.limit)?;
    let mut conn = state.store.acquire().await?;
    let rows = webhooks::deliveries(&mut conn, id, query.before, limit).await?;
    let rows = rows.ok_or_else(|| Problem::not_found("webhook", id))?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|one| one.event_id);
    Ok(Json(DeliveryList { data: views(rows), next }))
}
