//! Several replicas of one engine as one: requests go where there is room, what fails on one replica
//! is asked of another, and one that keeps failing is left alone for a while.

mod breaker;
mod load;
mod routing;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;

use self::{breaker::Breaker, load::Load};
use super::{Adapter, Completion, Engine, EngineError, EngineInfo, Limits, Request, Vllm};
use crate::{domain::message::Message, net::pause_after};

/// How often a text is asked for before the work that needs it fails; more where there are more replicas.
const ATTEMPTS: u32 = 3;
/// Pause before the second attempt; the next ones are longer.
const PAUSE: Duration = Duration::from_millis(200);

/// An engine of one or more replicas.
pub struct Pool {
    name: String,
    seeds: bool,
    replicas: Vec<Replica>,
}

struct Replica {
    client: Vllm,
    load: Load,
    breaker: Mutex<Breaker>,
}

/// A request's share of a replica, given back when it is over in whatever way.
struct Share<'a> {
    replica: &'a Replica,
    tokens: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.replica.load.remove(self.tokens);
        self.replica.breaker().released();
    }
}

impl Replica {
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, tokens: u64) -> Share<'_> {
        self.load.add(tokens);
        Share { replica: self, tokens }
    }

    /// Notes how a call went. A refused request is an answer too.
    fn note<T>(&self, outcome: &Result<T, EngineError>) {
        let mut breaker = self.breaker();
        match outcome {
            Ok(_) => breaker.succeeded(),
            Err(error) if error.is_of_request() => breaker.succeeded(),
            Err(error) => {
                if breaker.failed(Instant::now(), error.is_silence()) {
                    let replica = self.client.url();
                    tracing::warn!(replica, %error, "a replica is left alone for a while");
                    metrics::counter!("nlac_replica_rests_total", "replica" => replica.to_owned())
                        .increment(1);
                }
            }
        }
    }
}

impl Pool {
    /// An engine whose replicas listen at `urls`. With `seeds`, requests carry one.
    ///
    /// # Errors
    /// An HTTP client that cannot be built.
    pub fn new(
        name: &str,
        urls: &[String],
        base_model: &str,
        seeds: bool,
        limits: Limits,
    ) -> Result<Self, EngineError> {
        let replicas = urls.iter().map(|url| {
            Ok(Replica {
                client: Vllm::new(name, url, base_model, limits)?,
                load: Load::new(url),
                breaker: Mutex::default(),
            })
        });
        Ok(Self { name: name.to_owned(), seeds, replicas: replicas.collect::<Result<_, _>>()? })
    }

    /// A replica for a request, with its tokens added to it. Those `tried` come last, and so do those that
    /// rest: where all rest, asking one is better than failing at once.
    fn choose(&self, request: &Request, tried: &[usize]) -> (usize, Share<'_>) {
        let tokens = request.prompt.len() as u64 + u64::from(request.sampling.max_tokens);
        let now = Instant::now();
        let replicas: Vec<_> = self
            .replicas
            .iter()
            .enumerate()
            .map(|(index, replica)| routing::Candidate {
                name: replica.client.url(),
                outstanding: replica.load.tokens(),
                preferred: !tried.contains(&index) && replica.breaker().admits(now),
            })
            .collect();
        let index = routing::choose(&replicas, request.session, tokens);
        self.replicas[index].breaker().sent(now);
        (index, self.replicas[index].take(tokens))
    }

    fn empty(&self) -> EngineError {
        EngineError::Wrong { engine: self.name.clone(), what: "it has no replicas".into() }
    }
}

#[async_trait]
impl Engine for Pool {
    fn name(&self) -> &str {
        &self.name
    }

    fn takes_seeds(&self) -> bool {
        self.seeds
    }

    async fn generate(&self, request: Request) -> Result<Completion, EngineError> {
        // Generation has no effect but its answer, so it may be asked for again, and elsewhere.
        let most = ATTEMPTS.max(self.replicas.len() as u32);
        let (mut tried, mut hopeless) = (Vec::new(), true);
        loop {
            let (index, share) = self.choose(&request, &tried);
            let outcome = self.replicas[index].client.generate(&request).await;
            self.replicas[index].note(&outcome);
            drop(share);
            let error = match outcome {
                Ok(completion) => return Ok(completion),
                Err(error) if error.is_of_request() => return Err(error),
                Err(error) => error,
            };
            tried.push(index);
            hopeless &= !error.is_transient();
            let everywhere = (0..self.replicas.len()).all(|index| tried.contains(&index));
            let attempts = tried.len() as u32;
            if attempts >= most || (everywhere && hopeless) {
                return Err(error);
            }
            if everywhere {
                pause_after(attempts, PAUSE).await;
            }
        }
    }

    /// On one replica after the other, so that not all stand still at once. A replica that cannot take it is
    /// left to be taught when it is next asked; none that can is an error.
    async fn load(&self, adapter: &Adapter) -> Result<(), EngineError> {
        let (mut loaded, mut last) = (0, None);
        for replica in &self.replicas {
            let outcome = replica.client.load(adapter).await;
            replica.note(&outcome);
            match outcome {
                Ok(()) => loaded += 1,
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if loaded == 0 => Err(error),
            Some(error) => {
                tracing::warn!(%error, adapter = adapter.name, "not on every replica");
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn unload(&self, name: &str) -> Result<(), EngineError> {
        let mut last = Ok(());
        for replica in &self.replicas {
            let outcome = replica.client.unload(name).await;
            if outcome.is_err() {
                last = outcome;
            }
        }
        last
    }

    /// What all replicas together serve: the version of the first that answers, every name.
    async fn check(&self) -> Result<EngineInfo, EngineError> {
        let mut all: Option<EngineInfo> = None;
        let mut last = None;
        for replica in &self.replicas {
            match replica.client.check().await {
                Ok(info) => match &mut all {
                    None => all = Some(info),
                    Some(all) => {
                        let more = info.models.into_iter().filter(|m| !all.models.contains(m));
                        let more: Vec<_> = more.collect();
                        all.models.extend(more);
                    }
                },
                Err(error) => last = Some(error),
            }
        }
        all.ok_or_else(|| last.unwrap_or_else(|| self.empty()))
    }

    async fn tokenize_chat(&self, messages: &[Message]) -> Result<Vec<u32>, EngineError> {
        let mut last = self.empty();
        for replica in &self.replicas {
            match replica.client.tokenize_chat(messages).await {
                Ok(tokens) => return Ok(tokens),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
