//! The critic and the policy as a service: a version of a job is asked about an action by the code
//! that annotates, beside whatever runs.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    Peers,
    annotate::Slice,
    context::JobContext,
    guests::{Guests, unavailable},
    publish::load_and_probe,
};
use crate::{
    algo::{
        Replayed,
        nlac::{self, Advised},
    },
    domain::{
        fault::Fault,
        generation::{Generation, Weights},
        ids::{CheckpointId, GenerationId, TransitionId},
        seed::SeedPath,
        spec::{Ablation, AlgorithmSpec, NlacSpec, SamplingSpec},
    },
    experience::{
        action::Reply,
        consult::{
            Acts, Advice, Chance, Consult, Question, Refined, Round, Said, State, Unanswered,
            Usage, Version, Wanted,
        },
        context::Context,
        message::{Block, Message},
    },
    store::{Store, checkpoints, jobs, peers, replay_draws, transitions},
};

/// Questions that are answered at once. Engines share their slots fairly between these and each job.
const AT_ONCE: usize = 4;
/// Questions that are answered or wait; more are refused.
const MOST: usize = 32;
/// How long somebody waits until an adapter is loaded.
const LOADING: Duration = Duration::from_secs(20);
/// What to do when a version's files are deleted.
const KEEP: &str = "ask a version that is kept; --keep-versions says how many are";
/// The version before the first: no adapter.
const BASE: i32 = -1;

/// Answers questions.
pub struct Critics {
    store: Store,
    peers: Arc<Peers>,
    guests: Guests,
    seats: Semaphore,
    room: Semaphore,
}

impl Critics {
    /// Answers by the engines of `peers`.
    #[must_use]
    pub fn new(store: Store, peers: Arc<Peers>) -> Self {
        let (seats, room) = (Semaphore::new(MOST), Semaphore::new(AT_ONCE));
        Self { store, peers, guests: Guests::default(), seats, room }
    }

    /// Waits for its turn; refused where too many wait already.
    async fn turn(&self) -> Result<[SemaphorePermit<'_>; 2], Unanswered> {
        let seat = self.seats.try_acquire().map_err(|_| Unanswered::Busy { asked: MOST })?;
        let room = self.room.acquire().await.map_err(Fault::fail)?;
        Ok([seat, room])
    }

    /// The context of a version, ready to be asked, and its number.
    async fn context(&self, version: Version) -> Result<(JobContext, Option<i32>), Unanswered> {
        let mut conn = self.store.acquire().await.map_err(unavailable)?;
        let version = match version {
            Version::Promoted(job) => {
                let found = jobs::promoted(&mut conn, job).await.map_err(unavailable)?;
                let found = found.ok_or_else(|| not_found("job", job))?;
                Version::Checkpoint(found.ok_or_else(|| Unanswered::Conflict {
                    what: "the job has no promoted checkpoint".into(),
                    remedy: "promote one with POST /v1/checkpoints/{id}:promote, or ask one by its id".into(),
                })?)
            }
            other => other,
        };
        let (job, version) = match version {
            Version::Promoted(job) | Version::Base(job) => (job, None),
            Version::Checkpoint(id) => {
                let found = checkpoints::get(&mut conn, id).await.map_err(unavailable)?;
                let found = found.ok_or_else(|| not_found("checkpoint", id))?;
                if found.expired_at.is_some() {
                    return Err(Unanswered::Conflict {
                        what: format!("the files of version {} are deleted", found.version),
                        remedy: KEEP.into(),
                    });
                }
                (found.job_id, Some(found.version))
            }
        };
        let found = jobs::get(&mut conn, job).await.map_err(unavailable)?;
        let job = found.ok_or_else(|| not_found("job", job))?;
        drop(conn);
        let context = self.peers.context(&self.store, job, version.unwrap_or(BASE)).await;
        let context = context.map_err(|fault| Unanswered::Conflict {
            what: fault.to_string(),
            remedy: "see the job's spec, and GET /v1/engines for what is registered".into(),
        })?;
        if let Some(number) = version
            && (context.online.is_none() || context.target.is_none())
        {
            return Err(Unanswered::Conflict {
                what: format!("version {number} is not published yet"),
                remedy: "ask again when it is, or ask an earlier one".into(),
            });
        }
        self.guests.welcome(&self.store, &context).await?;
        Ok((context, version))
    }

    /// A stored transition, unless it is known to be of another environment than the job's.
    async fn stored(&self, context: &JobContext, id: TransitionId) -> Result<Replayed, Unanswered> {
        let mut conn = self.store.acquire().await.map_err(unavailable)?;
        let found = transitions::load(&mut conn, &[id]).await.map_err(unavailable)?.pop();
        let found = found.ok_or_else(|| not_found("transition", id))?;
        if found.environment.as_ref().is_some_and(|name| name != context.environment.name()) {
            return Err(Unanswered::Impossible {
                what: format!("transition {id} is of another environment than the job asked"),
                remedy: "ask a job with the same environment".into(),
            });
        }
        Ok(context.replayed(found, 0)?)
    }

    /// The action in its state, and where the choices come from.
    async fn put(
        &self,
        context: &JobContext,
        question: &Question,
    ) -> Result<(Replayed, SeedPath), Unanswered> {
        let lacking = |what: &str, remedy: &str| Unanswered::Impossible {
            what: what.into(),
            remedy: remedy.into(),
        };
        let given = |state: &Context| question.action.as_ref().map(|a| context.as_read(a, state));
        let mut replayed = match &question.state {
            State::Transition(id) => {
                let stored = self.stored(context, *id).await?;
                match given(&stored.state) {
                    Some(action) => Replayed { action, ..stored },
                    None => stored,
                }
            }
            State::Conversation(state) => {
                let action = given(state);
                let action =
                    action.ok_or_else(|| lacking("there is no action to judge", "give action"))?;
                Replayed::imagined(state.clone(), action)
            }
        };
        let iteration = match question.chance {
            Chance::Seed(seed) => return Ok((replayed, SeedPath::root(seed).label("asked"))),
            Chance::Annotation { iteration } => iteration,
        };
        let mut conn = self.store.acquire().await.map_err(unavailable)?;
        let (job, id) = (&context.job, replayed.transition.id);
        let place = replay_draws::place(&mut conn, job.id, iteration, id).await;
        let (position, slices) = place.map_err(unavailable)?.ok_or_else(|| {
            let what = format!("the job did not annotate this transition in iteration {iteration}");
            let remedy = "GET /v1/transitions/{id}/critiques tells in which it did; or give a seed";
            lacking(&what, remedy)
        })?;
        let position = position.cast_unsigned();
        let slice = Slice::at(position, u32::try_from(slices).unwrap_or(1).max(1));
        replayed.position = u64::from(position);
        Ok((replayed, slice.chance(job, iteration.cast_unsigned())))
    }
}

#[async_trait]
impl Consult for Critics {
    async fn advise(&self, question: &Question) -> Result<Advice, Unanswered> {
        let _turn = self.turn().await?;
        let (context, version) = self.context(question.version).await?;
        let spec = settings(&context, version, question.wanted)?;
        let (replayed, seed) = self.put(&context, question).await?;
        let setting = nlac::Setting {
            sampler: &context.sampler(),
            codec: &*context.codec,
            environment: &*context.environment,
            rollout: &context.job.spec.rollout,
            spec: &spec,
            iteration: 1,
            seed,
        };
        let advised = nlac::advise(&setting, &replayed).await?;
        let advice = told(&context, version, &replayed, advised);
        let outcome = &[("outcome", advice.outcome.as_str())];
        self.peers.meters.counter("nlac_advice_total", outcome).increment(1);
        Ok(advice)
    }

    async fn keep(&self, checkpoint: CheckpointId) -> Result<(), Unanswered> {
        let (context, _) = self.context(Version::Checkpoint(checkpoint)).await?;
        let Some(online) = &context.online else { return Ok(()) };
        let checkpoints = [online];
        let loading = load_and_probe(&*context.engine, &context.encoder, &checkpoints);
        tokio::time::timeout(LOADING, loading).await.map_err(Fault::retry)??;
        let found = context.engine.check().await.map_err(|e| e.to_string());
        let mut conn = self.store.acquire().await.map_err(unavailable)?;
        let engine = &context.job.spec.model.engine;
        peers::note_engine(&mut conn, engine, &found).await.map_err(unavailable)
    }

    async fn act(
        &self,
        version: Version,
        state: &State,
        seed: u64,
        samples: u32,
    ) -> Result<Acts, Unanswered> {
        let _turn = self.turn().await?;
        let (context, version) = self.context(version).await?;
        let state = match state {
            State::Transition(id) => self.stored(&context, *id).await?.state,
            State::Conversation(state) => state.clone(),
        };
        let (sampler, rollout) = (context.sampler(), &context.job.spec.rollout);
        let weights = if version.is_some() { Weights::Online } else { Weights::Base };
        let act = |temperature, seed| {
            let sampling = SamplingSpec { temperature, max_tokens: rollout.max_tokens };
            sampler.act(&state, weights, sampling, seed)
        };
        let seed = SeedPath::root(seed).label("asked to act");
        let all = (0..samples).map(|i| act(rollout.temperature, seed.index(u64::from(i))));
        let (greedy, samples) =
            tokio::try_join!(act(0.0, seed.label("greedy")), try_join_all(all))?;
        let said = |generation: &Generation| said(&context, generation);
        Ok(Acts { version, greedy: said(&greedy), samples: samples.iter().map(said).collect() })
    }
}

/// The job's own settings, as far as an answer needs them: no warm-up, and the base model in place of adapters
/// where it is asked.
fn settings(
    context: &JobContext,
    version: Option<i32>,
    wanted: Wanted,
) -> Result<NlacSpec, Unanswered> {
    let impossible =
        |what: String, remedy: &str| Unanswered::Impossible { what, remedy: remedy.into() };
    let name = &context.job.spec.name;
    let AlgorithmSpec::Nlac(spec) = &context.job.spec.algorithm else {
        let kind = context.job.spec.algorithm.name();
        let what = format!("job {name} trains by {kind}, which has no critic that speaks");
        return Err(impossible(what, "ask a job whose algorithm is nlac"));
    };
    if spec.ablation == Ablation::RawRollouts {
        let what = format!("job {name} critiques real rollouts: nothing there predicts");
        return Err(impossible(what, "ask a job without the ablation raw_rollouts"));
    }
    let rounds = match wanted {
        Wanted::Critique => 0,
        Wanted::Refinement { rounds } => match rounds.unwrap_or(spec.rounds) {
            0 => {
                let what = format!("job {name} refines nothing: its spec has 0 rounds");
                return Err(impossible(what, "give rounds"));
            }
            rounds => rounds,
        },
    };
    let mut weights = spec.weights.clone();
    for part in [&mut weights.successor, &mut weights.evaluator, &mut weights.refiner] {
        if version.is_none() && *part != Weights::Frozen {
            *part = Weights::Base;
        }
    }
    Ok(NlacSpec { rounds, weights, warmup_iterations: 0, ..spec.clone() })
}

fn told(
    context: &JobContext,
    version: Option<i32>,
    asked: &Replayed,
    Advised { annotations, action, outcome }: Advised,
) -> Advice {
    let generations: HashMap<GenerationId, &Generation> =
        annotations.generations.iter().map(|g| (g.id, g)).collect();
    let text = |id: GenerationId| generations.get(&id).map(|g| said(context, g));
    let mut rounds = Vec::new();
    for critique in &annotations.critiques {
        let Some(spoken) = text(critique.generation_id) else { continue };
        let read = annotations.predictions.iter();
        let read = read.filter(|p| critique.prediction_ids.contains(&p.id));
        let followed = annotations.refinements.iter().find(|r| r.critique_id == critique.id);
        rounds.push(Round {
            action: critique.action.clone(),
            futures: read.filter_map(|p| text(p.generation_id)).collect(),
            verdict: critique.verdict,
            critique: spoken,
            refinement: followed.and_then(|r| {
                let said = text(r.generation_id)?;
                Some(Refined { valid: r.valid, changed: r.changed, said })
            }),
        });
    }
    let key =
        |action: &Message| context.codec.reread(action, &asked.state).ok().map(|action| action.key);
    let original = &asked.action;
    Advice {
        job_id: context.job.id,
        version,
        readable: key(original).is_some(),
        outcome,
        changed: key(&action) != key(original),
        action: original.written().into_owned(),
        refined: action.written().into_owned(),
        rounds,
        usage: Usage {
            generations: u32::try_from(annotations.generations.len()).unwrap_or(u32::MAX),
            prompt_tokens: annotations.generations.iter().map(|g| i64::from(g.prompt_tokens)).sum(),
            completion_tokens: annotations
                .generations
                .iter()
                .map(|g| g.token_ids.len() as i64)
                .sum(),
        },
    }
}

/// A text with what made it, down to the adapter's hash.
fn said(context: &JobContext, generation: &Generation) -> Said {
    let by = context.online.iter().chain(&context.target);
    let mut by = by.filter(|checkpoint| Some(checkpoint.id) == generation.checkpoint_id);
    Said::of(generation, by.next().map(|checkpoint| checkpoint.sha256.clone()))
}

impl JobContext {
    /// An action that somebody typed, as the job's codec reads it.
    fn as_read(&self, action: &Message, state: &Context) -> Message {
        match action.blocks.as_slice() {
            [Block::Text(text)] => match self.codec.read(Reply::whole(text), state) {
                Ok(action) => action.message,
                Err(unreadable) => unreadable.message,
            },
            _ => action.clone(),
        }
    }
}

fn not_found(what: &'static str, id: impl std::fmt::Display) -> Unanswered {
    Unanswered::NotFound { what, id: id.to_string() }
}
