//! After an iteration: the critic's health is measured, the guards are read, and what tripped acts.

use std::{
    collections::{BinaryHeap, HashMap},
    pin::pin,
};

use futures_util::{Stream, TryStreamExt};
use rand::{Rng, seq::SliceRandom};
use serde_json::json;

use super::{Worker, context::IterationContext};
use crate::{
    algo::{Replayed, guard as judge, nlac},
    domain::{
        annotation::Verdict,
        event::EventKind,
        fault::Fault,
        generation::Weights,
        guard::{Guard, GuardAction},
        job::JobStatus,
        metric::{Metric, names},
        seed::SeedPath,
        spec::{Ablation, AlgorithmSpec, NlacSpec, SamplingSpec},
        work::Lease,
    },
    experience::{
        episode::RewardStatus,
        turns::{Turn, turns},
    },
    store::{
        StoreError,
        assessment::{self, HeldOut, Paired},
        events, iterations, jobs, metrics, transitions, work_items,
    },
};

/// Texts that variety is measured on: as many as small batches have, so that batches compare.
const TEXTS: i64 = 200;

/// What was measured, by metric, and what the guards read.
#[derive(Default)]
struct Assessed {
    metrics: Vec<(String, f64)>,
    readings: Vec<(Guard, f64)>,
}

impl Assessed {
    fn put(&mut self, name: &str, value: impl Into<Option<f64>>) {
        self.metrics.extend(value.into().map(|value| (name.to_owned(), value)));
    }

    fn read(&mut self, guard: Guard, reading: impl Into<Option<f64>>) {
        self.readings.extend(reading.into().map(|reading| (guard, reading)));
    }
}

impl Worker {
    /// Assesses an iteration with its own adapter.
    pub(super) async fn assess(&self, lease: &Lease) -> Result<(), Fault> {
        let context = self.context(lease, |iteration| iteration.index).await?;
        let mut assessed = Assessed::default();
        self.look_at_annotations(&context, &mut assessed).await?;
        self.look_at_evaluation(&context, &mut assessed).await?;
        self.act(lease, &context, assessed).await
    }

    /// What the iteration made of its batch.
    async fn look_at_annotations(
        &self,
        context: &IterationContext,
        out: &mut Assessed,
    ) -> Result<(), Fault> {
        let mut conn = self.store.acquire().await?;
        let counts = assessment::counts(&mut conn, context.iteration.id).await?;
        let share = |part: i64, of: i64| (of > 0).then(|| part as f64 / of as f64);
        out.put(names::TARGETS_LEAKED, share(counts.leaked, counts.targets));
        out.read(Guard::Leakage, share(counts.leaked, counts.targets));
        out.read(Guard::InvalidRefinements, share(counts.invalid, counts.refinements));
        let on_success = share(counts.yes_success, counts.judged_success);
        let on_failure = share(counts.yes_failure, counts.judged_failure);
        out.put(names::YES_ON_SUCCESS, on_success);
        out.put(names::YES_ON_FAILURE, on_failure);
        out.read(
            Guard::Sycophancy,
            on_failure.map(|failure| judge::sycophancy(failure, on_success.unwrap_or(failure))),
        );

        let texts = assessment::predictions(&mut conn, context.iteration.id, TEXTS).await?;
        let Some(now) = judge::variety(&texts) else { return Ok(()) };
        out.put(names::DISTINCT_PAIRS, now.distinct_pairs);
        out.put(names::DUPLICATES, now.duplicates);
        out.put(names::PREDICTION_WORDS, now.length);
        let endless = context.prompts.names_ends().then(|| {
            let without = texts.iter().filter(|t| context.prompts.outcome(t).is_none()).count();
            without as f64 / texts.len() as f64
        });
        out.put(names::PREDICTIONS_ENDLESS, endless);
        let malformed = share(counts.malformed, counts.targets);
        out.read(Guard::LazyCritic, endless.into_iter().chain(malformed).reduce(f64::max));
        let first = assessment::first_predicting(&mut conn, context.job.id).await?;
        let Some(first) = first.filter(|first| *first != context.iteration.id) else {
            return Ok(());
        };
        let reference = assessment::predictions(&mut conn, first, TEXTS).await?;
        let reference = judge::variety(&reference);
        out.read(Guard::Collapse, reference.map(|reference| judge::collapse(&now, &reference)));
        Ok(())
    }

    /// What held-out episodes tell; nothing in iterations that played none.
    async fn look_at_evaluation(
        &self,
        context: &IterationContext,
        out: &mut Assessed,
    ) -> Result<(), Fault> {
        let spec = &context.job.spec;
        let (quoted, index) = (spec.evaluation.temperature, context.iteration.index);
        let mut conn = self.store.acquire().await?;
        let seed = context.seed("health").label("held_out");
        let states = spec.health.states as usize;
        let looked = HeldOutSteps::look(
            context,
            assessment::held_out(&mut conn, context.iteration.id, quoted),
            &seed,
            states,
        )
        .await?;
        let paired = assessment::paired(&mut conn, context.job.id, quoted, index).await?;
        drop(conn);
        if looked.episodes == 0 {
            return Ok(());
        }
        if let Some(best) = best(&paired) {
            let (change, error) = best.change();
            out.put(names::EVAL_CHANGE, change);
            out.put(names::EVAL_CHANGE_ERROR, error);
            out.read(Guard::Regression, (-change).max(0.0));
        } else {
            out.read(Guard::Regression, 0.0);
        }
        let unreadable = looked.unreadable();
        out.put(names::FORMAT_ERRORS, unreadable);
        let forgotten = self.forgotten(context).await?;
        out.put(names::GENERAL_FORGOTTEN, forgotten);
        out.read(Guard::Forgetting, unreadable.into_iter().chain(forgotten).reduce(f64::max));
        match &spec.algorithm {
            AlgorithmSpec::Nlac(nlac) if spec.health.states > 0 => {
                self.critic_health(context, nlac, looked.chosen, out).await
            }
            _ => Ok(()),
        }
    }

    /// Words of the base model's greedy answers to general prompts that the adapter does not give, 0 to
    /// 1; none where the prompt set has no general prompts.
    async fn forgotten(&self, context: &IterationContext) -> Result<Option<f64>, Fault> {
        let general = context.prompts.general();
        let sampler = context.sampler()?;
        let sampling =
            SamplingSpec { temperature: 0.0, max_tokens: context.job.spec.rehearsal.max_tokens };
        let sampler = &sampler;
        let kept = futures_util::future::try_join_all(general.iter().map(|messages| async move {
            let answer =
                |weights| sampler.act(messages, weights, sampling, context.seed("general"));
            let (before, now) = (answer(Weights::Base).await?, answer(Weights::Online).await?);
            Ok::<_, Fault>(judge::kept_words(&before.text, &now.text))
        }))
        .await?;
        Ok((!kept.is_empty()).then(|| 1.0 - kept.iter().sum::<f64>() / kept.len() as f64))
    }

    async fn critic_health(
        &self,
        context: &IterationContext,
        spec: &NlacSpec,
        steps: Vec<(Replayed, bool)>,
        out: &mut Assessed,
    ) -> Result<(), Fault> {
        let health = &context.job.spec.health;
        let (seed, most) = (context.seed("health"), health.states as usize);
        let sampler = context.sampler()?;
        let setting = context.setting(&sampler, spec, seed);
        // Without a successor there is nothing that foresees.
        if spec.ablation != Ablation::RawRollouts {
            let foreseen = nlac::foresee(&setting, &steps, health.futures).await?;
            let scored: Vec<_> =
                foreseen.iter().filter_map(|f| Some((f.score?, f.success))).collect();
            out.put(names::OUTCOME_AUC, judge::auc(&scored));
            out.put(names::OUTCOME_STATES, scored.len() as f64);
            let yes = |success: bool| {
                let of: Vec<_> = foreseen.iter().filter(|f| f.success == success).collect();
                let yes = of.iter().filter(|f| f.verdict == Verdict::Yes).count();
                (!of.is_empty()).then(|| yes as f64 / of.len() as f64)
            };
            out.put(names::HELD_OUT_YES_ON_SUCCESS, yes(true));
            out.put(names::HELD_OUT_YES_ON_FAILURE, yes(false));
        }

        // Each pair goes back to a stored state.
        if !context.environment.capabilities().replayable {
            return Ok(());
        }
        let pairs = self.pairs(context, most).await?;
        let gains = nlac::gains(&setting, &pairs).await?;
        if let Some((mean, error)) = mean_and_error(&gains) {
            out.put(names::REFINER_GAIN, mean);
            out.put(names::REFINER_GAIN_ERROR, error);
            out.put(names::REFINER_PAIRS, gains.len() as f64);
        }
        Ok(())
    }

    /// Some of the actions that the iteration refined, with their refinements.
    async fn pairs(
        &self,
        context: &IterationContext,
        most: usize,
    ) -> Result<Vec<(Replayed, String)>, Fault> {
        let mut conn = self.store.acquire().await?;
        let mut refined = assessment::refined(&mut conn, context.iteration.id).await?;
        refined.shuffle(&mut context.seed("health").label("pairs").rng());
        refined.truncate(most);
        let ids: Vec<_> = refined.iter().map(|(id, _)| *id).collect();
        let loaded = transitions::load(&mut conn, &ids).await?;
        let pairs = (0..).zip(loaded.into_iter().zip(refined));
        let pairs = pairs.map(|(position, (loaded, (_, action)))| {
            Ok((context.replayed(loaded, position)?, action))
        });
        pairs.collect()
    }

    /// Writes what was measured; what tripped acts in the same transaction.
    async fn act(
        &self,
        lease: &Lease,
        context: &IterationContext,
        assessed: Assessed,
    ) -> Result<(), Fault> {
        let (job, index) = (&context.job, context.iteration.index);
        let mut tx = self.store.begin().await?;
        // The job before its unit, as everybody locks them: who cancels the job would wait in a circle otherwise.
        jobs::lock(&mut tx, job.id).await?;
        work_items::hold(&mut tx, lease).await?;
        let mut past = Vec::new();
        for (guard, _) in &assessed.readings {
            past.push((*guard, assessment::past(&mut tx, job.id, &guard.metric(), index).await?));
        }
        let of = |guard: Guard| -> Vec<f64> {
            past.iter().find(|(g, _)| *g == guard).map(|(_, p)| p.clone()).unwrap_or_default()
        };
        let tripped = judge::tripped(&job.spec.guards, &assessed.readings, of);
        let readings = assessed.readings.iter().map(|(guard, value)| (guard.metric(), *value));
        let measured: Vec<_> = assessed
            .metrics
            .iter()
            .cloned()
            .chain(readings)
            .map(|(name, value)| Metric { name, iteration: index, temperature: None, value })
            .collect();
        metrics::put_many(&mut tx, job.id, &measured).await?;
        for trip in &tripped {
            let message = format!(
                "guard {}: {:.2} is above {:.2} in iteration {index}: {}",
                trip.guard, trip.reading, trip.threshold, trip.action
            );
            let data = json!({
                "guard": trip.guard, "reading": trip.reading, "threshold": trip.threshold,
                "action": trip.action, "iteration": index,
            });
            events::append(&mut tx, job.id, EventKind::GuardTripped, &message, data).await?;
        }
        let asked = |action: GuardAction| tripped.iter().any(|trip| trip.action == action);
        if asked(GuardAction::Stop) {
            iterations::set_last(&mut tx, job.id).await?;
        } else if asked(GuardAction::RollBack) {
            self.roll_back(&mut tx, context).await?;
        }
        if asked(GuardAction::Pause) {
            let from = [JobStatus::Running];
            if jobs::move_status(&mut tx, job.id, &from, JobStatus::Paused, None).await? {
                let (guards, readings): (Vec<_>, Vec<_>) = tripped
                    .iter()
                    .filter(|trip| trip.action == GuardAction::Pause)
                    .map(|judge::Tripped { guard, reading, threshold, .. }| {
                        (*guard, format!("{guard} at {reading:.2}, above {threshold:.2}"))
                    })
                    .unzip();
                let message = format!(
                    "paused by a guard in iteration {index}: {}; resume or cancel the job",
                    readings.join(", ")
                );
                let data = json!({ "guards": guards });
                events::append(&mut tx, job.id, EventKind::Paused, &message, data).await?;
            }
        }
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }

    /// The next iteration starts from the version with the best evaluation; the newest of equals.
    async fn roll_back(
        &self,
        tx: &mut sqlx::PgConnection,
        context: &IterationContext,
    ) -> Result<(), Fault> {
        let (job, index) = (&context.job, context.iteration.index);
        let quoted = job.spec.evaluation.temperature;
        let mut paired = assessment::paired(tx, job.id, quoted, index).await?;
        paired.retain(|earlier| earlier.kept);
        let Some(best) = best(&paired).filter(|best| best.change().0 < 0.0) else { return Ok(()) };
        let (version, success) = (best.version, best.earlier_success());
        if !iterations::roll_back(tx, context.iteration.id, version, false).await? {
            // Somebody chose another version.
            return Ok(());
        }
        work_items::annotate_by(tx, job.id, index, version).await?;
        let message = format!(
            "the next iteration goes on from version {version}, which solved {:.1} % of the {} episodes that both \
             played; version {index} solved {:.1} points less",
            100.0 * success,
            best.episodes,
            -100.0 * best.change().0
        );
        let data = json!({ "iteration": index, "version": version, "success": success });
        events::append(tx, job.id, EventKind::RolledBack, &message, data).await?;
        Ok(())
    }
}

/// The earlier evaluation that a version falls furthest behind, or is ahead of by the least; the newest of equals.
fn best(paired: &[Paired]) -> Option<&Paired> {
    paired
        .iter()
        .min_by(|a, b| a.change().0.total_cmp(&b.change().0).then(b.version.cmp(&a.version)))
}

/// What held-out episodes show, and some of their steps. Episodes are read one after the other, so only the chosen
/// steps stay in memory.
struct HeldOutSteps {
    episodes: u64,
    steps: u64,
    unreadable: u64,
    chosen: Vec<(Replayed, bool)>,
}

impl HeldOutSteps {
    /// Reads episodes and draws `most` of their steps, each with the same chance.
    async fn look(
        context: &IterationContext,
        episodes: impl Stream<Item = Result<HeldOut, StoreError>>,
        seed: &SeedPath,
        most: usize,
    ) -> Result<Self, Fault> {
        let (mut rng, mut lots) = (seed.rng(), BinaryHeap::new());
        let mut seen = Self { episodes: 0, steps: 0, unreadable: 0, chosen: Vec::new() };
        let mut places: HashMap<u64, (Replayed, bool)> = HashMap::new();
        let mut episodes = pin!(episodes);
        while let Some(episode) = episodes.try_next().await? {
            seen.episodes += 1;
            let played = turns(&episode.whole);
            let taken = usize::try_from(episode.turns).unwrap_or(0).min(played.len());
            let opening = played.len() - taken;
            for (number, turn) in (1..).zip(played.into_iter().skip(opening)) {
                if context.codec.reread(&turn.action, &turn.state).is_err() {
                    seen.unreadable += 1;
                }
                let position = seen.steps;
                seen.steps += 1;
                // The smallest lots win: whoever comes later has the same chance.
                lots.push((rng.random::<u64>(), position));
                if lots.len() > most
                    && let Some((_, out)) = lots.pop()
                {
                    places.remove(&out);
                    if out == position {
                        continue;
                    }
                }
                let step = held_out(turn, number == taken, position);
                places.insert(position, (step, episode.success));
            }
        }
        let mut chosen: Vec<_> = places.into_iter().collect();
        chosen.sort_unstable_by_key(|(position, _)| *position);
        seen.chosen = chosen.into_iter().map(|(_, step)| step).collect();
        Ok(seen)
    }

    fn unreadable(&self) -> Option<f64> {
        (self.steps > 0).then(|| self.unreadable as f64 / self.steps as f64)
    }
}

/// A step of a held-out episode. They are not stored as transitions.
fn held_out(turn: Turn, done: bool, position: u64) -> Replayed {
    let Turn { state, action, observation } = turn;
    let mut step = Replayed::imagined(state, action).followed_by(observation);
    step.transition.reward_status = RewardStatus::Observed;
    step.transition.done = done;
    Replayed { position, ..step }
}

/// A mean and its standard error; none for fewer than two values.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((mean, (squares / (n - 1.0) / n).sqrt()))
}
