//! The only HTTP client: deadlines, byte limits, located errors, bounded retries.

mod collector;

use std::{borrow::Cow, future::Future, time::Duration};

use opentelemetry::global;
use opentelemetry_http::HeaderInjector;
use rand::Rng;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, de::DeserializeOwned};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub use collector::Collector;

/// Largest body that is read.
const MOST_BYTES: usize = 512 << 20;
/// How much of an error's body is kept.
const KEPT: usize = 64 << 10;
/// How much of it is shown.
const SHOWN: usize = 2000;

/// What went wrong with a peer.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No connection: nothing was sent.
    #[error(
        "cannot reach {peer}: {reason}; check that it is running and that its address is right"
    )]
    Connect {
        /// The peer's URL, without secrets.
        peer: String,
        /// Why.
        reason: String,
    },
    /// The connection failed after something was sent; its effect is unknown.
    #[error("{peer} broke off: {reason}")]
    Broken {
        /// The peer's URL.
        peer: String,
        /// Why.
        reason: String,
    },
    /// No answer in time; its effect is unknown.
    #[error("{peer} did not answer within {seconds} s")]
    Timeout {
        /// The peer's URL.
        peer: String,
        /// The deadline.
        seconds: u64,
    },
    /// An answer that is not a success.
    #[error("{peer} answered {status}: {}", beginning(body))]
    Status {
        /// The peer's URL.
        peer: String,
        /// HTTP status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// A body that is not what it should be.
    #[error("{peer} sent what cannot be read: {reason}")]
    Decode {
        /// The peer's URL.
        peer: String,
        /// Why.
        reason: String,
    },
}

impl NetError {
    /// HTTP status of an answer.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Its kind in a word, or the status of the answer.
    #[must_use]
    pub fn kind(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Connect { .. } => "connect",
            Self::Broken { .. } => "broken",
            Self::Timeout { .. } => "timeout",
            Self::Status { status, .. } => return Cow::Owned(status.to_string()),
            Self::Decode { .. } => "decode",
        })
    }
}

/// A header that is never shown.
pub struct Secret {
    header: HeaderName,
    value: String,
}

impl Secret {
    /// `Authorization: Bearer …`, as engines take it.
    #[must_use]
    pub fn bearer(key: &str) -> Self {
        Self { header: reqwest::header::AUTHORIZATION, value: format!("Bearer {key}") }
    }

    /// `X-API-Key: …`, as the Tinker API takes it.
    #[must_use]
    pub fn api_key(key: &str) -> Self {
        Self { header: HeaderName::from_static("x-api-key"), value: key.to_owned() }
    }
}

/// An HTTP client for one peer.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client of the service at `base` (`http://host:port`).
    ///
    /// # Errors
    /// A TLS back end that cannot be initialised.
    pub fn new(base: &str) -> Result<Self, NetError> {
        Self::with_secret(base, None)
    }

    /// A client that sends a secret header with every request. The value is shown nowhere.
    ///
    /// # Errors
    /// A TLS back end that cannot be initialised; a secret that no header can hold.
    pub fn with_secret(base: &str, secret: Option<Secret>) -> Result<Self, NetError> {
        let base = base.trim_end_matches('/').to_owned();
        let failed = |reason: String| NetError::Connect { peer: base.clone(), reason };
        let mut headers = HeaderMap::new();
        if let Some(Secret { header, value }) = secret {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                failed("its API key holds characters that no header can hold".into())
            })?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .pool_max_idle_per_host(256)
            .tcp_nodelay(true)
            .no_proxy()
            .default_headers(headers)
            .build()
            .map_err(|e| failed(e.to_string()))?;
        Ok(Self { http, base })
    }

    /// The peer's address.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// GET, read as JSON.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<T, NetError> {
        self.decode(&self.send(self.http.get(self.url(path)), deadline).await?)
    }

    /// GET, the body as it is.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn get_bytes(&self, path: &str, deadline: Duration) -> Result<Vec<u8>, NetError> {
        self.send(self.http.get(self.url(path)), deadline).await
    }

    /// GET, the body piece by piece: of any size, as long as the next piece comes within `patience`.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn download(&self, path: &str, patience: Duration) -> Result<Download, NetError> {
        let answer = self.answer(self.http.get(self.url(path)));
        let response = self.within(patience, answer).await?;
        Ok(Download { client: self.clone(), response, patience })
    }

    /// DELETE, read as JSON.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<T, NetError> {
        self.decode(&self.send(self.http.delete(self.url(path)), deadline).await?)
    }

    /// POST of JSON, read as JSON.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        deadline: Duration,
    ) -> Result<T, NetError> {
        self.decode(&self.post_bytes(path, body, deadline).await?)
    }

    /// POST of a text with headers that say what it is, read as JSON.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn post_text<T: DeserializeOwned>(
        &self,
        path: &str,
        text: String,
        headers: &[(&str, &str)],
        deadline: Duration,
    ) -> Result<T, NetError> {
        let request = self.http.post(self.url(path)).body(text);
        let request = with_headers(request, headers);
        self.decode(&self.send(request, deadline).await?)
    }

    /// POST of JSON, the answer as it is.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn post_bytes(
        &self,
        path: &str,
        body: &impl Serialize,
        deadline: Duration,
    ) -> Result<Vec<u8>, NetError> {
        self.send(self.http.post(self.url(path)).json(body), deadline).await
    }

    /// POST of JSON as it is, with headers of its own; what is answered does not matter.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn post_raw(
        &self,
        path: &str,
        body: Vec<u8>,
        headers: &[(&str, String)],
        deadline: Duration,
    ) -> Result<(), NetError> {
        let request = self.http.post(self.url(path)).header("content-type", "application/json");
        let request = with_headers(request, headers);
        self.send(request.body(body), deadline).await.map(drop)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        deadline: Duration,
    ) -> Result<Vec<u8>, NetError> {
        self.within(deadline, self.exchange(request)).await
    }

    async fn within<T>(
        &self,
        deadline: Duration,
        exchange: impl Future<Output = Result<T, NetError>>,
    ) -> Result<T, NetError> {
        tokio::time::timeout(deadline, exchange).await.unwrap_or_else(|_| {
            Err(NetError::Timeout { peer: self.base.clone(), seconds: deadline.as_secs() })
        })
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, NetError> {
        let response = self.answer(request).await?;
        self.whole(response).await
    }

    /// An answer that is a success; its body is still to come.
    async fn answer(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, NetError> {
        let response = in_context(request).send().await.map_err(|e| self.broken(&e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = self.whole(response).await?;
        let body = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]).into_owned();
        Err(NetError::Status { peer: self.base.clone(), status: status.as_u16(), body })
    }

    async fn whole(&self, mut response: reqwest::Response) -> Result<Vec<u8>, NetError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.broken(&e))? {
            if bytes.len() + chunk.len() > MOST_BYTES {
                let reason = format!("more than {MOST_BYTES} bytes");
                return Err(NetError::Decode { peer: self.base.clone(), reason });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn broken(&self, error: &reqwest::Error) -> NetError {
        let (peer, reason) = (self.base.clone(), root_cause(error));
        if error.is_connect() {
            NetError::Connect { peer, reason }
        } else {
            NetError::Broken { peer, reason }
        }
    }

    fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, NetError> {
        serde_json::from_slice(bytes)
            .map_err(|e| NetError::Decode { peer: self.base.clone(), reason: e.to_string() })
    }
}

/// A body that is on its way.
pub struct Download {
    client: Client,
    response: reqwest::Response,
    patience: Duration,
}

impl Download {
    /// The next piece of it; none at its end.
    ///
    /// # Errors
    /// See [`NetError`].
    pub async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, NetError> {
        let Self { client, response, patience } = self;
        let chunk = async { response.chunk().await.map_err(|e| client.broken(&e)) };
        client.within(*patience, chunk).await
    }
}

fn beginning(body: &str) -> &str {
    &body[..body.floor_char_boundary(SHOWN)]
}

fn with_headers(
    request: reqwest::RequestBuilder,
    headers: &[(&str, impl AsRef<str>)],
) -> reqwest::RequestBuilder {
    headers.iter().fold(request, |request, (name, value)| request.header(*name, value.as_ref()))
}

/// Says in the course of what it is sent, as W3C trace context; nothing where nothing is traced.
fn in_context(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    let context = tracing::Span::current().context();
    let mut headers = HeaderMap::new();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeaderInjector(&mut headers));
    });
    request.headers(headers)
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Tries up to `attempts` times while `transient` says that it may help, with jittered exponential
/// pauses from `pause` on. Only for calls that may safely happen twice.
///
/// # Errors
/// The last failure.
pub async fn retry<T, E, F: Future<Output = Result<T, E>>>(
    attempts: u32,
    pause: Duration,
    transient: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> F,
) -> Result<T, E> {
    let mut attempt = 1;
    loop {
        match call().await {
            Err(error) if attempt < attempts && transient(&error) => {
                pause_after(attempt, pause).await;
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// The pause after the `failures`-th failure in a row: `pause`, twice as long each time, jittered.
pub async fn pause_after(failures: u32, pause: Duration) {
    let jitter = rand::rng().random_range(0.5..1.5);
    let doubled = f64::from(1_u32 << failures.saturating_sub(1).min(10));
    tokio::time::sleep(pause.mul_f64(jitter * doubled)).await;
}
