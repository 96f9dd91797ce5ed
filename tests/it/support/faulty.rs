//! A local engine or trainer in a process of its own, behind a proxy that spoils chosen answers and can
//! kill the process between a request and its answer.

use std::{
    collections::HashMap,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::Value;

use super::{Place, free_port, http, model_dir, serve};

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It is answered.
    Pass,
    /// It is not passed on, and answered with a status.
    Refuse(u16),
    /// It is taken, and never answered.
    Hang,
    /// It is passed on after a while.
    Late(Duration),
    /// It is done twice, as by a proxy that asks again, and answered once.
    Twice,
    /// It is done, and the answer breaks off in the middle.
    Cut,
    /// It is done, and the answer says something else.
    Rewrite(fn(&mut Value)),
    /// It is done, and the process dies before it has answered; a new one takes its place.
    Kill,
}

/// Decides about the n-th request (from 1) of a path by one method.
pub type Decide = dyn Fn(&str, u32) -> Fate + Send + Sync;

/// The process and its proxy; both end with it.
pub struct Faulty {
    /// Where the proxy listens.
    pub url: String,
    inner: Arc<Inner>,
}

struct Inner {
    port: u16,
    command: Vec<String>,
    process: Mutex<Child>,
    decide: Box<Decide>,
    seen: Mutex<HashMap<String, u32>>,
    spoilt: Mutex<Vec<String>>,
    contexts: Mutex<Vec<(String, String)>>,
    http: reqwest::Client,
}

impl Faulty {
    /// An engine of the base model that ships.
    pub async fn engine(decide: Box<Decide>) -> Self {
        Self::start(vec!["engine".into()], &model_dir(), decide).await
    }

    /// A trainer of the base model that ships.
    pub async fn trainer(place: &Place, decide: Box<Decide>) -> Self {
        Self::trainer_of(place, &model_dir(), decide).await
    }

    /// A trainer of a base model, under its directory's name.
    pub async fn trainer_of(place: &Place, model: &Path, decide: Box<Decide>) -> Self {
        let checkpoints = place.path().join("faulty-trainer").display().to_string();
        let command = vec!["trainer".into(), "--checkpoints".into(), checkpoints];
        Self::start(command, model, decide).await
    }

    async fn start(mut command: Vec<String>, model: &Path, decide: Box<Decide>) -> Self {
        let port = free_port();
        command.extend(["--listen".into(), format!("127.0.0.1:{port}"), "--model".into()]);
        command.push(model.display().to_string());
        command.extend(["--name".into(), model.file_name().unwrap().to_string_lossy().into()]);
        let process = Mutex::new(spawn(&command, port).await);
        let (seen, spoilt, contexts) = Default::default();
        let inner = Inner { port, command, process, decide, seen, spoilt, contexts, http: http() };
        let inner = Arc::new(inner);
        let routes = Router::new()
            .fallback(pass)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(inner.clone());
        Self { url: serve(routes).await, inner }
    }

    /// The process ends, and nothing answers until [`Faulty::back`].
    pub fn away(&self) {
        let mut process = self.inner.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// A new process takes its place, with the same files.
    pub async fn back(&self) {
        let next = spawn(&self.inner.command, self.inner.port).await;
        *self.inner.process.lock().unwrap() = next;
    }

    /// The requests that did not simply pass.
    pub fn spoilt(&self) -> Vec<String> {
        self.inner.spoilt.lock().unwrap().clone()
    }

    /// `traceparent` of every request of a path that had one.
    pub fn contexts(&self, path: &str) -> Vec<String> {
        let all = self.inner.contexts.lock().unwrap();
        all.iter().filter(|(at, _)| at == path).map(|(_, context)| context.clone()).collect()
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        let mut process = self.inner.process.lock().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}

async fn spawn(command: &[String], port: u16) -> Child {
    let process = Command::new(env!("CARGO_BIN_EXE_nlac"))
        .arg("local")
        .args(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(Instant::now() < deadline, "{command:?} does not come up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process
}

impl Inner {
    async fn kill(&self) {
        {
            let mut process = self.process.lock().unwrap();
            process.kill().unwrap();
            process.wait().unwrap();
        }
        let next = spawn(&self.command, self.port).await;
        *self.process.lock().unwrap() = next;
    }
}

async fn pass(
    State(inner): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(context) = headers.get("traceparent") {
        let context = context.to_str().unwrap().to_owned();
        inner.contexts.lock().unwrap().push((uri.path().to_owned(), context));
    }
    let number = {
        let mut seen = inner.seen.lock().unwrap();
        let count = seen.entry(format!("{method} {}", uri.path())).or_default();
        *count += 1;
        *count
    };
    // Whether a route is there may be asked at any time.
    let asks_for_route = method == Method::GET && uri.path() == "/v1/load_lora_adapter";
    let fate = if asks_for_route { Fate::Pass } else { (inner.decide)(uri.path(), number) };
    if !matches!(fate, Fate::Pass) {
        inner.spoilt.lock().unwrap().push(format!("{} {number}: {fate:?}", uri.path()));
    }
    match fate {
        Fate::Refuse(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        Fate::Hang => std::future::pending().await,
        Fate::Late(after) => tokio::time::sleep(after).await,
        _ => {}
    }
    let url = format!("http://127.0.0.1:{}{uri}", inner.port);
    let send = || {
        let request = inner.http.request(method.clone(), &url);
        request.header("content-type", "application/json").body(body.clone()).send()
    };
    if matches!(fate, Fate::Twice) {
        let _ = send().await;
    }
    let Ok(answer) = send().await else { return StatusCode::BAD_GATEWAY.into_response() };
    let status = answer.status();
    let Ok(bytes) = answer.bytes().await else { return StatusCode::BAD_GATEWAY.into_response() };
    let bytes = match fate {
        Fate::Pass | Fate::Refuse(_) | Fate::Hang | Fate::Late(_) | Fate::Twice => bytes,
        Fate::Rewrite(change) => {
            let mut value: Value = serde_json::from_slice(&bytes).unwrap();
            change(&mut value);
            value.to_string().into()
        }
        Fate::Cut => return broken(bytes.slice(..bytes.len() / 2)),
        Fate::Kill => {
            inner.kill().await;
            return broken(Bytes::new());
        }
    };
    (status, [("content-type", "application/json")], bytes).into_response()
}

/// An answer that ends by the connection's end.
fn broken(head: Bytes) -> Response {
    let parts = [Ok(head), Err(std::io::Error::other("the connection is lost"))];
    Response::new(Body::from_stream(futures_util::stream::iter(parts)))
}
