//! Replay: a slice of the iteration's batch becomes annotations and training examples.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Worker,
    context::{IterationContext, JobContext, chance},
    kind::{Planned, Work},
};
use crate::{
    algo::{self, Annotations, Draw, Played, Replayed, rehearsal, rejection, replay as selection},
    domain::{
        annotation::Verdict,
        event::EventKind,
        fault::Fault,
        ids::{EpisodeId, TransitionId},
        job::{Job, Phase},
        seed::SeedPath,
        spec::{RejectionSpec, ReplaySpec},
        work::{Class, Lease},
    },
    store::{
        StoreError, annotations, events, generations, leases, replay, replay_draws, search,
        spending::{self, Spending},
        training,
        transitions::{self, Loaded},
    },
};

/// Examples of slice c are numbered from `c * SLICE` on, so that slices need not know of each other.
const SLICE: i32 = 1_000_000;

/// One slice of an iteration's batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    /// Which, from 0.
    pub(super) number: u32,
    /// Of how many.
    pub(super) of: u32,
}

impl Slice {
    /// The slice that holds a place of the batch.
    pub(crate) const fn at(position: u32, of: u32) -> Self {
        Self { number: position % of, of }
    }

    /// Root of the choices that a job makes for the slice in an iteration.
    pub(crate) fn chance(self, job: &Job, iteration: u32) -> SeedPath {
        chance(job, "annotate", iteration).label("slice").index(u64::from(self.number))
    }

    fn seed(self, context: &IterationContext) -> SeedPath {
        self.chance(&context.job, context.index())
    }
}

/// Transitions per unit.
const TRANSITIONS: u32 = 64;

/// Episodes per unit, where whole episodes are learnt from; more where a group is larger.
const EPISODES: u32 = 32;

/// Annotate slice `chunk` of `chunks` of the iteration's batch with the adapters of a version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Annotate {
    version: i32,
    chunk: u32,
    chunks: u32,
}

impl Work for Annotate {
    const NAME: &'static str = "annotate";
    const CLASS: Class = Class::Engine;
    const PHASE: Phase = Phase::Annotate;

    fn plan(iteration: &Planned<'_>) -> Vec<Self> {
        let chunks = match algo::of(&iteration.spec.algorithm).draw() {
            Draw::Replay(replay) => replay.batch.div_ceil(TRANSITIONS),
            Draw::Rollouts => {
                let rollout = &iteration.spec.rollout;
                (rollout.episodes / rollout.group)
                    .clamp(1, rollout.episodes.div_ceil(EPISODES).max(1))
            }
            Draw::Successes(_) | Draw::Nothing => 1,
        };
        let version = iteration.version;
        (0..chunks).map(|chunk| Self { version, chunk, chunks }).collect()
    }

    async fn run(self, worker: &Worker, lease: &Lease) -> Result<(), Fault> {
        let slice = Slice { number: self.chunk, of: self.chunks };
        worker.annotate(lease, self.version, slice).await
    }
}

impl Worker {
    async fn annotate(&self, lease: &Lease, version: i32, slice: Slice) -> Result<(), Fault> {
        let context = self.context(lease, |_| version).await?;
        let algorithm = algo::of(&context.job.spec.algorithm);
        let Drawn { batch, left_out } = match algorithm.draw() {
            Draw::Replay(spec) => self.draw(&context, spec, slice).await?,
            Draw::Successes(spec) => self.select_successes(&context, spec).await?,
            Draw::Rollouts => self.rollouts(&context, slice).await?,
            Draw::Nothing => Drawn::default(),
        };
        if batch.is_empty()
            && let Some(reason) = left_out.values().next()
        {
            return Err(Fault::Fail(reason.clone()));
        }
        let sampler = context.sampler()?;
        let setting = context.setting(&sampler, &(), slice.seed(&context));
        let mut made = algorithm.annotate(&setting, &batch).await?;
        made.left_out.extend(left_out);
        let rehearsed = self.rehearse(&context, slice).await?;
        made.generations.extend(rehearsed.generations);
        made.examples.extend(rehearsed.examples);
        for (ordinal, example) in (slice.number.cast_signed() * SLICE..).zip(&mut made.examples) {
            example.ordinal = ordinal;
        }
        let (job, iteration) = (context.job.id, context.iteration.id);
        let mut tx = self.store.begin().await?;
        leases::hold(&mut tx, lease).await?;
        generations::insert_many(&mut tx, job, iteration, &made.generations).await?;
        annotations::insert_predictions(&mut tx, job, iteration, &made.predictions).await?;
        annotations::insert_targets(&mut tx, job, iteration, &made.targets).await?;
        annotations::insert_critiques(&mut tx, job, iteration, &made.critiques).await?;
        annotations::insert_refinements(&mut tx, job, iteration, &made.refinements).await?;
        annotations::insert_choices(&mut tx, job, iteration, &made.choices).await?;
        training::insert_examples(&mut tx, job, iteration, &made.examples).await?;
        let first = made.critiques.iter().filter(|c| c.round == 0);
        let judged = first.map(|c| (c.transition_id, c.verdict == Verdict::No));
        // The chooser prefers another action: it finds the one that was taken wanting.
        let chosen = made.choices.iter().filter(|c| c.action.is_some());
        let verdicts: Vec<_> = judged.chain(chosen.map(|c| (c.transition_id, c.changed))).collect();
        let out: Vec<_> = made.left_out.keys().copied().collect();
        replay::set_annotated(&mut tx, job, &verdicts, &out).await?;
        search::refresh(&mut tx, job, &made.annotated()).await?;
        let taken = Spending { env_steps: made.env_steps.cast_signed(), ..Spending::default() };
        spending::add(&mut tx, iteration, taken).await?;
        if let Some(first) = made.left_out.values().next() {
            let (count, index) = (out.len(), context.index());
            let message = format!(
                "iteration {index} goes on without {count} transitions, of which an engine or the model's chat \
                 template rejected something (if they are too long: lower max_tokens in algorithm.sampling, or start the \
                 engine with a longer context); the first: {first}"
            );
            let data = json!({ "iteration": index, "transitions": out });
            events::append(&mut tx, job, EventKind::Warned, &message, data).await?;
        }
        leases::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }

    /// A slice of what the iteration replays. The first slice to ask draws for all of them: priorities
    /// may change, and transitions arrive, while the others wait.
    async fn draw(
        &self,
        context: &IterationContext,
        spec: &ReplaySpec,
        slice: Slice,
    ) -> Result<Drawn, Fault> {
        let mut tx = self.store.begin().await?;
        let mut draws = replay_draws::lock(&mut tx, context.iteration.id).await?;
        if draws.is_empty() {
            let until = context.iteration.index;
            let since = spec.max_staleness.map_or(0, |most| until - most.cast_signed());
            let entries: Vec<_> =
                replay::entries(&mut tx, context.job.id, spec.capacity, since, until)
                    .await?
                    .into_iter()
                    .map(|e| selection::Entry {
                        transition_id: e.transition_id,
                        done: e.done,
                        solved: e.solved,
                        loss: e.loss,
                        refused: e.refused,
                        left_out: e.left_out,
                    })
                    .collect();
            let mut rng = context.seed("replay").rng();
            let beta = selection::beta(spec, context.index(), context.job.spec.budget.iterations);
            draws = selection::select(&entries, spec, beta, &mut rng)
                .into_iter()
                .map(|drawn| replay_draws::Draw {
                    transition_id: entries[drawn.index].transition_id,
                    importance: drawn.importance,
                })
                .collect();
            replay_draws::insert_many(&mut tx, context.iteration.id, &draws).await?;
        }
        let slice: Vec<_> = (0..)
            .zip(draws)
            .filter(|(position, _)| position % u64::from(slice.of) == u64::from(slice.number))
            .collect();
        let drawn = load(context, &mut tx, slice).await?;
        tx.commit().await.map_err(StoreError::from)?;
        Ok(drawn)
    }

    /// The slice's share of general prompts.
    async fn rehearse(
        &self,
        context: &IterationContext,
        slice: Slice,
    ) -> Result<Annotations, Fault> {
        let spec = &context.job.spec.rehearsal;
        let replayed =
            algo::of(&context.job.spec.algorithm).draw().replay().map_or(0, |replay| replay.batch);
        let all = (replayed as f32 * spec.share).round() as u32;
        let count = (slice.number..all).step_by(slice.of as usize).count();
        if count == 0 {
            return Ok(Annotations::default());
        }
        rehearsal::examples(
            &context.sampler()?,
            spec,
            count,
            &slice.seed(context).label("rehearsal"),
        )
        .await
    }

    async fn select_successes(
        &self,
        context: &IterationContext,
        spec: &RejectionSpec,
    ) -> Result<Drawn, Fault> {
        let mut conn = self.store.acquire().await?;
        let which = transitions::Successes {
            newest: spec.keep_episodes,
            per_task: spec.per_task,
            deduplicate: spec.deduplicate,
        };
        let successes = transitions::of_successes(&mut conn, context.job.id, which).await?;
        let drawn = rejection::select(&successes, spec, &context.seed("annotate"));
        let draws = drawn
            .into_iter()
            .map(|transition_id| replay_draws::Draw { transition_id, importance: 1.0 });
        load(context, &mut conn, (0..).zip(draws).collect()).await
    }

    /// The steps of a slice of the iteration's own groups of episodes.
    async fn rollouts(&self, context: &IterationContext, slice: Slice) -> Result<Drawn, Fault> {
        let group = context.job.spec.rollout.group;
        let mut conn = self.store.acquire().await?;
        let which = (slice.number, slice.of);
        let steps =
            transitions::of_iteration(&mut conn, context.iteration.id, group, which).await?;
        let draw = |transition_id| replay_draws::Draw { transition_id, importance: 1.0 };
        load(context, &mut conn, (0..).zip(steps.into_iter().map(draw)).collect()).await
    }
}

/// Experience that was drawn.
#[derive(Default)]
struct Drawn {
    batch: Vec<Replayed>,
    /// What the job's model has no tokens for, with the reason: its chat template does not take such a conversation.
    left_out: BTreeMap<TransitionId, String>,
}

async fn load(
    context: &JobContext,
    conn: &mut sqlx::PgConnection,
    slice: Vec<(u64, replay_draws::Draw)>,
) -> Result<Drawn, Fault> {
    let ids: Vec<_> = slice.iter().map(|(_, draw)| draw.transition_id).collect();
    let loaded = transitions::load(conn, &ids).await?;
    let mut drawn = Drawn::default();
    for ((position, draw), loaded) in slice.into_iter().zip(loaded) {
        match context.replayed(loaded, position) {
            Ok(replayed) => {
                drawn.batch.push(Replayed { importance: draw.importance, ..replayed });
            }
            Err(fault) => drop(drawn.left_out.insert(draw.transition_id, fault.to_string())),
        }
    }
    if algo::of(&context.job.spec.algorithm).reads_episodes() {
        let mut episodes = episodes(context, conn, &drawn.batch).await?;
        drawn.batch.retain_mut(|replayed| {
            match episodes.get_mut(&replayed.transition.episode_id) {
                Some(Ok(played)) => replayed.episode = Some(played.clone()),
                Some(Err(reason)) => {
                    drawn.left_out.insert(replayed.transition.id, reason.clone());
                }
                None => {}
            }
            replayed.episode.is_some()
        });
    }
    Ok(drawn)
}

/// The whole episodes of what was drawn, or why the job's model has no tokens for one.
async fn episodes(
    context: &JobContext,
    conn: &mut sqlx::PgConnection,
    batch: &[Replayed],
) -> Result<HashMap<EpisodeId, Result<Arc<Played>, String>>, Fault> {
    let mut ids: Vec<_> = batch.iter().map(|replayed| replayed.transition.episode_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let steps = transitions::of_episodes(conn, &ids).await?;
    let tasks: HashMap<_, _> =
        steps.iter().map(|step| (step.episode_id, step.task.clone())).collect();
    let steps: Vec<_> = steps.into_iter().map(|step| step.id).collect();
    let mut of_episode: HashMap<EpisodeId, Result<Vec<Replayed>, String>> = HashMap::new();
    for loaded in transitions::load(conn, &steps).await? {
        let episode_id = loaded.transition.episode_id;
        let known = of_episode.entry(episode_id).or_insert_with(|| Ok(Vec::new()));
        match (known.as_mut(), context.replayed(loaded, 0)) {
            (Ok(steps), Ok(step)) => steps.push(step),
            (Ok(_), Err(fault)) => *known = Err(fault.to_string()),
            (Err(_), _) => {}
        }
    }
    let played = |(id, steps): (EpisodeId, Result<Vec<Replayed>, String>)| {
        let task = tasks.get(&id).cloned().unwrap_or_default();
        (id, steps.map(|steps| Arc::new(Played { task, steps })))
    };
    Ok(of_episode.into_iter().map(played).collect())
}

impl JobContext {
    /// A stored transition at a place of a batch; its loss counts in full. An action that no engine wrote has the
    /// tokens that the job's own model would write it in.
    pub(crate) fn replayed(&self, loaded: Loaded, position: u64) -> Result<Replayed, Fault> {
        let action_tokens = match loaded.action_tokens {
            Some(tokens) => tokens.into_iter().map(i32::cast_unsigned).collect(),
            None => {
                let policy = self.prompts.policy();
                let prompt = policy.render(&loaded.state, None, &json!({})).map_err(Fault::fail)?;
                self.encoder.completion(&prompt, &loaded.action).map_err(Fault::fail)?
            }
        };
        Ok(Replayed {
            transition: loaded.transition,
            state: loaded.state,
            action: loaded.action,
            observation: loaded.observation,
            next_state: loaded.next_state,
            action_tokens,
            action_logprobs: loaded.action_logprobs,
            action_cut: loaded.action_cut,
            position,
            episode_seed: loaded.episode_seed,
            importance: 1.0,
            episode: None,
        })
    }
}
