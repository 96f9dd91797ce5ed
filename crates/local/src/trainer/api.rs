//! The Tinker routes. Submitting answers at once with a request id; results are polled for.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    TrainerOptions,
    compute::{Job, Operation, adapter_dir, is_name, state_dir},
    futures::{Futures, Poll},
    wire::{CreateModel, Forward, Heartbeat, Load, ModelOnly, OptimStep, Retrieve, Save},
};

/// How long a poll is held before it is answered 408.
const PATIENCE: Duration = Duration::from_secs(60);

/// What handlers share.
pub struct Shared {
    pub options: TrainerOptions,
    pub futures: Futures,
    jobs: Mutex<Sender<Job>>,
    next: AtomicU64,
    /// `(model, seq_id)` to the body's hash and its future.
    submitted: Mutex<HashMap<(String, u64), ([u8; 32], u64)>>,
    /// Distinguishes this process's ids from an earlier one's.
    epoch: String,
}

impl Shared {
    pub fn new(options: TrainerOptions) -> (Self, Receiver<Job>) {
        let (sender, receiver) = channel();
        let epoch = format!("{:08x}", rand::random::<u32>());
        let shared = Self {
            options,
            futures: Futures::default(),
            jobs: Mutex::new(sender),
            next: AtomicU64::new(0),
            submitted: Mutex::default(),
            epoch,
        };
        (shared, receiver)
    }

    pub fn stop(&self) {
        self.send(Job { future: 0, model_id: String::new(), operation: Operation::Stop });
    }

    fn send(&self, job: Job) {
        let jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A compute thread that has gone leaves the future pending; the poll's deadline tells.
        let _ = jobs.send(job);
    }

    fn fresh(&self, kind: &str) -> String {
        format!("{kind}_{}{:04x}", self.epoch, self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn submit(&self, model_id: String, operation: Operation) -> Value {
        let future = self.futures.open();
        let body = json!({ "request_id": future.to_string(), "model_id": model_id });
        self.send(Job { future, model_id, operation });
        body
    }

    /// Submits what must not happen twice: the same number with the same body is the same request.
    fn submit_once(
        &self,
        model_id: String,
        seq_id: Option<u64>,
        body: &impl serde::Serialize,
        operation: Operation,
    ) -> Result<Value, ApiError> {
        let Some(seq_id) = seq_id else { return Ok(self.submit(model_id, operation)) };
        let bytes = serde_json::to_vec(body).map_err(|e| ApiError::unprocessable(e.to_string()))?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let mut submitted =
            self.submitted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (model_id.clone(), seq_id);
        match submitted.get(&key) {
            Some((seen, future)) if *seen == digest => {
                Ok(json!({ "request_id": future.to_string(), "model_id": model_id }))
            }
            Some(_) => Err(ApiError(
                StatusCode::CONFLICT,
                format!("seq_id {seq_id} of model {model_id} was used for another request"),
            )),
            None => {
                let future = self.futures.open();
                submitted.insert(key, (digest, future));
                let body = json!({ "request_id": future.to_string(), "model_id": model_id });
                self.send(Job { future, model_id, operation });
                Ok(body)
            }
        }
    }
}

/// FastAPI's error body: `{"detail": …}`.
struct ApiError(StatusCode, String);

impl ApiError {
    fn unprocessable(detail: String) -> Self {
        Self(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "detail": self.1 }))).into_response()
    }
}

type Answer = Result<Json<Value>, ApiError>;
type Body<T> = Result<Json<T>, JsonRejection>;

fn parse<T>(body: Body<T>) -> Result<T, ApiError> {
    body.map(|Json(body)| body).map_err(|e| ApiError::unprocessable(e.body_text()))
}

pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/v1/healthz", get(|| async { Json(json!({ "status": "ok" })) }))
        .route("/api/v1/get_server_capabilities", get(capabilities))
        .route("/api/v1/create_session", post(create_session))
        .route("/api/v1/session_heartbeat", post(heartbeat))
        .route("/api/v1/create_model", post(create_model))
        .route("/api/v1/unload_model", post(unload_model))
        .route("/api/v1/get_info", post(get_info))
        .route("/api/v1/forward", post(forward))
        .route("/api/v1/forward_backward", post(forward_backward))
        .route("/api/v1/optim_step", post(optim_step))
        .route("/api/v1/save_weights", post(save_weights))
        .route("/api/v1/load_weights", post(load_weights))
        .route("/api/v1/save_weights_for_sampler", post(save_for_sampler))
        .route("/api/v1/retrieve_future", post(retrieve_future))
        .route("/api/v1/training_runs/{model_id}/checkpoints/{name}/archive", get(archive))
        .layer(DefaultBodyLimit::max(256 << 20))
        .with_state(shared)
}

async fn capabilities(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({ "supported_models": [{ "model_name": shared.options.base_model }] }))
}

async fn create_session(State(shared): State<Arc<Shared>>, _: Body<Value>) -> Json<Value> {
    Json(json!({ "type": "create_session", "session_id": shared.fresh("session") }))
}

async fn heartbeat(State(shared): State<Arc<Shared>>, body: Body<Heartbeat>) -> Answer {
    let session = parse(body)?.session_id;
    if session.starts_with(&format!("session_{}", shared.epoch)) {
        return Ok(Json(json!({ "type": "session_heartbeat" })));
    }
    Err(ApiError(StatusCode::NOT_FOUND, format!("Session {session} not found")))
}

async fn create_model(State(shared): State<Arc<Shared>>, body: Body<CreateModel>) -> Answer {
    let request = parse(body)?;
    let model_id = shared.fresh("model");
    let settings = request.lora_config.clone();
    let mut answer = shared.submit(model_id.clone(), Operation::Create(settings.clone()));
    answer["base_model"] = request.base_model.into();
    answer["lora_config"] = json!({ "rank": settings.rank, "seed": settings.seed });
    answer["status"] = "created".into();
    Ok(Json(answer))
}

async fn unload_model(State(shared): State<Arc<Shared>>, body: Body<ModelOnly>) -> Answer {
    Ok(Json(shared.submit(parse(body)?.model_id, Operation::Unload)))
}

async fn get_info(State(shared): State<Arc<Shared>>, body: Body<ModelOnly>) -> Answer {
    let model_id = parse(body)?.model_id;
    Ok(Json(json!({
        "type": "get_info",
        "model_id": model_id,
        "model_data": { "model_name": shared.options.base_model },
    })))
}

async fn forward(State(shared): State<Arc<Shared>>, body: Body<Forward>) -> Answer {
    let request = parse(body)?;
    check_loss(&request)?;
    let operation = Operation::Forward(request.forward_backward_input);
    Ok(Json(shared.submit(request.model_id, operation)))
}

async fn forward_backward(State(shared): State<Arc<Shared>>, body: Body<Forward>) -> Answer {
    let request = parse(body)?;
    check_loss(&request)?;
    let operation = Operation::ForwardBackward(request.forward_backward_input.clone());
    shared.submit_once(request.model_id.clone(), request.seq_id, &request, operation).map(Json)
}

fn check_loss(request: &Forward) -> Result<(), ApiError> {
    let input = &request.forward_backward_input;
    if input.loss_fn != "cross_entropy" {
        let detail = format!("loss_fn {:?} is not supported; use cross_entropy", input.loss_fn);
        return Err(ApiError::unprocessable(detail));
    }
    let settings = input.loss_fn_config.as_ref().and_then(Value::as_object);
    match settings.and_then(|s| s.keys().next()) {
        Some(key) => {
            Err(ApiError::unprocessable(format!("cross_entropy takes no setting {key:?}")))
        }
        None => Ok(()),
    }
}

async fn optim_step(State(shared): State<Arc<Shared>>, body: Body<OptimStep>) -> Answer {
    let request = parse(body)?;
    let operation = Operation::OptimStep(request.adam_params.clone());
    shared.submit_once(request.model_id.clone(), request.seq_id, &request, operation).map(Json)
}

fn check_name(name: &str) -> Result<(), ApiError> {
    if is_name(name) {
        return Ok(());
    }
    Err(ApiError::unprocessable(format!("{name:?} does not match ^[A-Za-z0-9_-]{{1,255}}$")))
}

async fn save_weights(State(shared): State<Arc<Shared>>, body: Body<Save>) -> Answer {
    let request = parse(body)?;
    check_name(&request.path)?;
    check_name(&request.model_id)?;
    if state_dir(&shared.options.checkpoints, &request.model_id, &request.path).exists() {
        let detail = format!("Checkpoint {} already exists", request.path);
        return Err(ApiError(StatusCode::CONFLICT, detail));
    }
    Ok(Json(shared.submit(request.model_id, Operation::SaveState(request.path))))
}

async fn load_weights(State(shared): State<Arc<Shared>>, body: Body<Load>) -> Answer {
    let Load { model_id, path, optimizer } = parse(body)?;
    Ok(Json(shared.submit(model_id, Operation::LoadState { path, optimizer })))
}

async fn save_for_sampler(State(shared): State<Arc<Shared>>, body: Body<Save>) -> Answer {
    let request = parse(body)?;
    check_name(&request.path)?;
    check_name(&request.model_id)?;
    if adapter_dir(&shared.options.checkpoints, &request.model_id, &request.path).exists() {
        let detail = format!("Checkpoint {} already exists", request.path);
        return Err(ApiError(StatusCode::CONFLICT, detail));
    }
    Ok(Json(shared.submit(request.model_id, Operation::SaveAdapter(request.path))))
}

async fn retrieve_future(State(shared): State<Arc<Shared>>, body: Body<Retrieve>) -> Answer {
    let request_id = parse(body)?.request_id;
    let unknown = || ApiError(StatusCode::NOT_FOUND, format!("Future {request_id} not found"));
    let id = request_id.parse().map_err(|_| unknown())?;
    match shared.futures.poll(id, PATIENCE).await {
        Poll::Ready(Ok(value)) => Ok(Json(value)),
        Poll::Ready(Err(detail)) => Err(ApiError(StatusCode::BAD_REQUEST, detail)),
        Poll::Pending => {
            Err(ApiError(StatusCode::REQUEST_TIMEOUT, "Timeout waiting for result".into()))
        }
        Poll::Unknown => Err(unknown()),
    }
}

async fn archive(
    State(shared): State<Arc<Shared>>,
    Path((model_id, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    check_name(&model_id)?;
    check_name(&name)?;
    let directory = adapter_dir(&shared.options.checkpoints, &model_id, &name);
    if !directory.exists() {
        return Err(ApiError(StatusCode::NOT_FOUND, format!("Checkpoint {name} not found")));
    }
    let packed = tokio::task::spawn_blocking(move || pack(&directory)).await;
    let bytes = packed
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|e| ApiError(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

fn pack(directory: &std::path::Path) -> std::io::Result<Bytes> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(encoder);
    tar.append_dir_all(".", directory)?;
    Ok(Bytes::from(tar.into_inner()?.finish()?))
}
