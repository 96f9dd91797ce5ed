//! An engine's replicas, one by one.

use std::{path::PathBuf, time::Instant};

use futures_util::future::try_join_all;
use serde::Deserialize;

use super::{Examination, Finding, Trouble};
use crate::{
    domain::{generation::Sampling, message::Message},
    engine::{Adapter, Completion, Engine, EngineError, EngineInfo, Limits, Pool, Request},
    prompt::Encoder,
};

/// Requests at a time when speed is measured, and tokens that each may write.
const CROWD: (u64, u32) = (64, 32);

/// A registered engine.
#[derive(Debug, Clone, Deserialize)]
pub struct EngineUnderTest {
    /// Registered name.
    pub name: String,
    /// Addresses of its replicas.
    pub urls: Vec<String>,
    /// The base model's name on the wire.
    pub base_model: String,
    /// Where the base model's tokenizer lies.
    pub model_dir: PathBuf,
    /// Whether requests carry a seed.
    pub seeds: bool,
}

/// Examines every replica. With an adapter, it is loaded, asked and unloaded.
pub async fn examine(engine: &EngineUnderTest, adapter: Option<&Adapter>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for url in &engine.urls {
        let mut examination = Examination::new(format!("{} {url}", engine.name));
        examine_replica(engine, url, adapter, &mut examination).await;
        findings.extend(examination.findings);
    }
    findings
}

async fn examine_replica(
    engine: &EngineUnderTest,
    url: &String,
    adapter: Option<&Adapter>,
    seen: &mut Examination,
) {
    let remedy = "check that it runs, that its address is right and that it serves vLLM's protocol";
    let reached = async {
        let EngineUnderTest { name, base_model, seeds, .. } = engine;
        let urls = std::slice::from_ref(url);
        let pool = Pool::new(name, urls, base_model, *seeds, Limits::default())?;
        let info = pool.check().await?;
        Ok::<_, EngineError>((pool, info))
    };
    let told = |(_, info): &(Pool, EngineInfo)| {
        let longest = info.max_model_len.map_or("no limit told".into(), |n| format!("{n} tokens"));
        format!("version {}, longest sequence {longest}", info.version)
    };
    let Some((pool, info)) = seen.attempt("reach", remedy, reached, told).await else { return };
    if !info.models.contains(&engine.base_model) {
        let what = format!("it serves {:?}, not {}", info.models, engine.base_model);
        let remedy =
            "register it under the name that it serves, or start it with --served-model-name";
        return seen.conclude("base model", Err(Trouble { what, remedy }));
    }

    let messages = [Message::user("hello")];
    let remedy =
        "model_dir must hold the tokenizer.json and chat template of the model that it serves";
    let encoded = async { Encoder::load(&engine.model_dir)?.encode(&messages) };
    let told = |tokens: &Vec<u32>| format!("{} tokens", tokens.len());
    let Some(prompt) = seen.attempt("tokenizer", remedy, encoded, told).await else { return };
    let remedy =
        "nlac and the engine tokenise differently: register the model_dir of the same model";
    let theirs = seen.attempt("tokenise", remedy, pool.tokenize_chat(&messages), told).await;
    if let Some(theirs) = theirs.filter(|theirs| *theirs != prompt) {
        let what = format!("nlac reads {prompt:?}, the engine {theirs:?}");
        return seen.conclude("same tokens", Err(Trouble { what, remedy }));
    }

    let remedy = "see its log; vLLM 0.10 or newer is needed for token ids, and its build for CPUs up to 0.32 \
                  dies of seeds: register it with \"seeds\": false";
    let asked = || request(&prompt, None, engine.seeds.then_some(1));
    let told = |c: &Completion| format!("{} tokens", c.token_ids.len());
    let Some(first) = seen.attempt("generate", remedy, pool.generate(asked()), told).await else {
        return;
    };
    if engine.seeds {
        let told = |c: &Completion| {
            let same = c.token_ids == first.token_ids;
            let words =
                if same { "the same text" } else { "another text: seeds are not exact here" };
            words.to_owned()
        };
        seen.attempt("repeat", remedy, pool.generate(asked()), told).await;
    }
    if let Some(adapter) = adapter {
        examine_adapter(&pool, adapter, &prompt, seen).await;
    }
    let remedy = "it answers one request but not many: lower its load, or look at its log";
    let start = Instant::now();
    let crowd = try_join_all((0..CROWD.0).map(|number| {
        let seed = engine.seeds.then_some(number.cast_signed());
        let mut request = request(&prompt, None, seed);
        request.sampling.max_tokens = CROWD.1;
        pool.generate(request)
    }));
    let told = |all: &Vec<Completion>| {
        let tokens: usize = all.iter().map(|c| c.token_ids.len()).sum();
        format!(
            "{:.0} tokens/s, {} at a time",
            tokens as f64 / start.elapsed().as_secs_f64(),
            CROWD.0
        )
    };
    seen.attempt("throughput", remedy, crowd, told).await;
}

async fn examine_adapter(pool: &Pool, adapter: &Adapter, prompt: &[u32], seen: &mut Examination) {
    let remedy = "start vLLM with --enable-lora, --max-lora-rank of at least the job's rank and the environment \
                  variable VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, and let it see the same files (--shared)";
    let loaded = seen.attempt("load adapter", remedy, pool.load(adapter), |()| String::new()).await;
    if loaded.is_none() {
        return;
    }
    let remedy =
        "it answers for the base model in the adapter's name, or fails with adapters: see its log";
    let greedy = |adapter: Option<Adapter>| {
        let mut request = request(prompt, adapter, None);
        request.sampling.temperature = 0.0;
        pool.generate(request)
    };
    let both = async {
        let (base, adapted) = (greedy(None).await?, greedy(Some(adapter.clone())).await?);
        if base.logprobs == adapted.logprobs {
            let what = "the adapter changes nothing: the base model answers in its name".to_owned();
            return Err(EngineError::Wrong { engine: pool.name().to_owned(), what });
        }
        Ok(adapted)
    };
    let told = |_: &Completion| "it changes what is written".to_owned();
    seen.attempt("use adapter", remedy, both, told).await;
    let remedy = "adapters pile up where they cannot be unloaded; see its log";
    seen.attempt("unload", remedy, pool.unload(&adapter.name), |()| String::new()).await;
}

fn request(prompt: &[u32], adapter: Option<Adapter>, seed: Option<i64>) -> Request {
    let sampling = Sampling { temperature: 1.0, max_tokens: 8, seed };
    Request { adapter, prompt: prompt.to_vec(), sampling, logprobs: true, session: 0 }
}
