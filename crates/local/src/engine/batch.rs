//! The compute thread: at every step it admits what waits, runs prefill and decode in one ragged
//! batch, draws one token per sequence, and lets go of what is finished or abandoned.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, TryRecvError},
    },
};

use tokio::sync::mpsc::UnboundedSender;

use super::{
    adapters::Served,
    api::Shared,
    prefix::{BLOCK, Node, PrefixCache},
    sampler::Sampler,
};
use crate::model::{Extend, KvCache, extend, log_softmax};

/// One sequence to be generated.
pub struct Job {
    pub served: Served,
    pub prompt: Vec<u32>,
    pub max_tokens: usize,
    pub sampler: Sampler,
    pub stop_tokens: Vec<u32>,
    pub ignore_eos: bool,
    /// How many alternatives to report log-probabilities of; none reports no log-probabilities.
    pub logprobs: Option<usize>,
    pub cache_salt: Option<String>,
    pub reply: UnboundedSender<Event>,
}

/// What the compute thread reports of a sequence.
#[derive(Debug)]
pub enum Event {
    Token(Token),
    Finished(Finish),
}

/// A drawn token.
#[derive(Debug, Clone)]
pub struct Token {
    pub id: u32,
    pub logprob: Option<f32>,
    /// The most likely tokens.
    pub top: Vec<(u32, f32)>,
}

/// Why a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// End of text.
    Eos,
    /// A stop token of the request.
    StopToken(u32),
    /// The token limit.
    Length,
}

struct Running {
    job: Job,
    cache: KvCache,
    tokens: Vec<u32>,
    /// Deepest node of the prefix tree that holds this sequence's positions, and how many those are.
    node: (Node, usize),
    finished: bool,
}

/// Starts the thread.
pub fn start(shared: &Arc<Shared>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let shared = shared.clone();
    let jobs = shared.take_jobs();
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        let prefixes = PrefixCache::new(shared.options.prefix_cache_tokens);
        Batcher { shared, waiting: VecDeque::new(), running: Vec::new(), prefixes }.run(&jobs);
    })
}

struct Batcher {
    shared: Arc<Shared>,
    waiting: VecDeque<Job>,
    running: Vec<Running>,
    prefixes: PrefixCache,
}

impl Batcher {
    fn run(&mut self, jobs: &Receiver<Message>) {
        loop {
            let idle = self.running.is_empty() && self.waiting.is_empty();
            let message = if idle {
                jobs.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                jobs.try_recv()
            };
            match message {
                Ok(Message::Generate(job)) => {
                    self.waiting.push_back(job);
                    continue;
                }
                Ok(Message::Forget(weights)) => {
                    self.prefixes.forget(weights);
                    continue;
                }
                Ok(Message::Stop) | Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {}
            }
            self.waiting.retain(|job| !job.reply.is_closed());
            self.running.retain(|r| !r.job.reply.is_closed());
            self.step();
            let gauges = &self.shared.gauges;
            gauges.running.store(self.running.len() as u64, Ordering::Relaxed);
            gauges.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
            gauges.prefix_queries.store(self.prefixes.queries, Ordering::Relaxed);
            gauges.prefix_hits.store(self.prefixes.hits, Ordering::Relaxed);
            gauges.cache_usage.store(self.prefixes.usage().to_bits(), Ordering::Relaxed);
        }
    }

    fn step(&mut self) {
        let mut budget = self.shared.options.max_batch_tokens.saturating_sub(self.running.len());
        let mut prefilling = HashSet::new();
        let mut deferred = VecDeque::new();
        while self.running.len() < self.shared.options.max_running && budget > 0 {
            let Some(job) = self.waiting.pop_front() else { break };
            // A prompt that shares its next block with one of this step waits for that one's cache.
            match self.admit(job, &mut prefilling) {
                Ok(running) => {
                    budget = budget.saturating_sub(running.tokens.len() - running.cache.len());
                    self.running.push(running);
                }
                Err(job) => deferred.push_back(job),
            }
        }
        deferred.append(&mut self.waiting);
        self.waiting = deferred;
        self.advance();
    }

    fn admit(
        &mut self,
        job: Job,
        prefilling: &mut HashSet<(Node, [u32; BLOCK])>,
    ) -> Result<Running, Job> {
        let mut node = self.prefixes.root(job.served.id, job.cache_salt.as_deref());
        let mut found = Vec::new();
        // The last token is always computed: its logits are what is wanted.
        let reusable = (job.prompt.len() - 1) / BLOCK;
        for block in job.prompt.chunks_exact(BLOCK).take(reusable) {
            let Ok(tokens) = block.try_into() else { break };
            let Some((next, kv)) = self.prefixes.get(node, tokens) else {
                if !prefilling.insert((node, tokens)) {
                    return Err(job);
                }
                break;
            };
            node = next;
            found.push(kv);
        }
        let config = &self.shared.config;
        let mut cache = KvCache::new(config, job.prompt.len() + job.max_tokens);
        for kv in &found {
            cache.append(config, kv);
        }
        self.shared.gauges.prompt_tokens.fetch_add(job.prompt.len() as u64, Ordering::Relaxed);
        let tokens = job.prompt.clone();
        Ok(Running { job, node: (node, cache.len()), cache, tokens, finished: false })
    }

    fn advance(&mut self) {
        let config = &self.shared.config;
        let mut batch: Vec<_> = self
            .running
            .iter_mut()
            .map(|r| Extend {
                weights: &r.job.served.weights,
                tokens: &r.tokens[r.cache.len()..],
                cache: &mut r.cache,
                all_logits: false,
            })
            .collect();
        let logits = extend(config, &mut batch, self.shared.options.threads);
        drop(batch);
        for (running, logits) in self.running.iter_mut().zip(logits) {
            // Whole blocks of the prompt are shared from now on.
            let prompt_blocks = running.job.prompt.len() / BLOCK * BLOCK;
            while running.node.1 + BLOCK <= prompt_blocks {
                let range = running.node.1..running.node.1 + BLOCK;
                let Ok(tokens) = running.tokens[range.clone()].try_into() else { break };
                let cache = &running.cache;
                let next =
                    self.prefixes.put(running.node.0, tokens, || cache.export(config, range));
                running.node = (next, running.node.1 + BLOCK);
            }
            let id = running.job.sampler.sample(&logits);
            let token = report(&running.job, &logits, id);
            running.tokens.push(id);
            self.shared.gauges.generated_tokens.fetch_add(1, Ordering::Relaxed);
            // A client that has gone shows as a closed channel at the next step.
            let _ = running.job.reply.send(Event::Token(token));
            let written = running.tokens.len() - running.job.prompt.len();
            let finish = if !running.job.ignore_eos && config.eos_token_ids.contains(&id) {
                Some(Finish::Eos)
            } else if running.job.stop_tokens.contains(&id) {
                Some(Finish::StopToken(id))
            } else if written >= running.job.max_tokens {
                Some(Finish::Length)
            } else {
                None
            };
            if let Some(finish) = finish {
                running.finished = true;
                let _ = running.job.reply.send(Event::Finished(finish));
            }
        }
        self.running.retain(|r| !r.finished);
    }
}

fn report(job: &Job, logits: &[f32], id: u32) -> Token {
    let Some(count) = job.logprobs else { return Token { id, logprob: None, top: Vec::new() } };
    let all = log_softmax(logits);
    let mut top: Vec<(u32, f32)> = Vec::new();
    if count > 0 {
        top = (0_u32..).zip(all.iter().copied()).collect();
        top.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        top.truncate(count);
    }
    Token { id, logprob: Some(all[id as usize]), top }
}

/// What the compute thread is told.
pub enum Message {
    Generate(Job),
    /// An adapter was unloaded.
    Forget(u64),
    Stop,
}
