//! Replay: a slice of the iteration's batch becomes annotations and training examples.

use super::{Worker, scene::Scene};
use crate::{
    algo::{
        Replayed, nlac,
        nlac::{Annotations, Setting},
        rejection, replay as selection,
    },
    domain::{
        fault::Fault,
        ids::TransitionId,
        spec::{AlgorithmSpec, NlacSpec, RejectionSpec},
        work::Lease,
    },
    store::{StoreError, annotations, generations, replay, training, transitions, work_items},
};

/// Examples of slice c are numbered from `c * SLICE` on, so that slices need not know of each other.
const SLICE: i32 = 1_000_000;

impl Worker {
    /// Annotates a slice with the adapters of the iteration before.
    pub(super) async fn annotate(
        &self,
        lease: &Lease,
        chunk: u32,
        chunks: u32,
    ) -> Result<(), Fault> {
        let scene = self.scene(lease, |iteration| iteration.index - 1).await?;
        let mut made = match &scene.job.spec.algorithm {
            AlgorithmSpec::Nlac(spec) => self.annotate_nlac(&scene, spec, chunk, chunks).await?,
            AlgorithmSpec::RejectionFineTuning(spec) => self.select_successes(&scene, spec).await?,
        };
        for (ordinal, example) in (chunk.cast_signed() * SLICE..).zip(&mut made.examples) {
            example.ordinal = ordinal;
        }
        let (job, iteration) = (scene.job.id, scene.iteration.id);
        let mut tx = self.store.begin().await?;
        work_items::hold(&mut tx, lease).await?;
        generations::insert_many(&mut tx, job, iteration, &made.generations).await?;
        annotations::insert_predictions(&mut tx, job, iteration, &made.predictions).await?;
        annotations::insert_targets(&mut tx, job, iteration, &made.targets).await?;
        annotations::insert_critiques(&mut tx, job, iteration, &made.critiques).await?;
        annotations::insert_refinements(&mut tx, job, iteration, &made.refinements).await?;
        training::insert_examples(&mut tx, job, iteration, &made.examples).await?;
        work_items::complete(&mut tx, lease).await?;
        tx.commit().await.map_err(|e| StoreError::from(e).into())
    }

    async fn annotate_nlac(
        &self,
        scene: &Scene,
        spec: &NlacSpec,
        chunk: u32,
        chunks: u32,
    ) -> Result<Annotations, Fault> {
        let mut conn = self.store.acquire().await?;
        let entries: Vec<_> = replay::entries(&mut conn, scene.job.id, spec.replay.capacity)
            .await?
            .into_iter()
            .map(|e| selection::Entry {
                transition_id: e.transition_id,
                done: e.done,
                loss: e.loss,
            })
            .collect();
        // Priorities change only when the iteration learns, so every slice draws the same batch.
        let mut rng = scene.seed("replay").rng();
        let drawn = selection::select(&entries, &spec.replay, &mut rng);
        let slice: Vec<_> = (0..)
            .zip(&drawn)
            .filter(|(position, _)| position % u64::from(chunks) == u64::from(chunk))
            .map(|(position, &index)| (position, entries[index].transition_id))
            .collect();
        let batch = load(&mut conn, slice).await?;
        drop(conn);
        let cast = scene.cast()?;
        let setting = Setting {
            cast: &cast,
            environment: &*scene.environment,
            spec,
            iteration: scene.index(),
            seed: scene.seed("annotate").label("slice").index(u64::from(chunk)),
        };
        nlac::annotate(&setting, &batch).await
    }

    async fn select_successes(
        &self,
        scene: &Scene,
        spec: &RejectionSpec,
    ) -> Result<Annotations, Fault> {
        let mut conn = self.store.acquire().await?;
        let successes =
            transitions::of_successes(&mut conn, scene.job.id, spec.keep_episodes).await?;
        let drawn = rejection::select(&successes, spec, &scene.seed("annotate"));
        let batch = load(&mut conn, (0..).zip(drawn).collect()).await?;
        let examples = rejection::examples(&scene.prompts, &scene.encoder, &batch)?;
        Ok(Annotations { examples, ..Annotations::default() })
    }
}

async fn load(
    conn: &mut sqlx::PgConnection,
    slice: Vec<(u64, TransitionId)>,
) -> Result<Vec<Replayed>, Fault> {
    let ids: Vec<_> = slice.iter().map(|(_, id)| *id).collect();
    let loaded = transitions::load(conn, &ids).await?;
    Ok(slice
        .into_iter()
        .zip(loaded)
        .map(|((position, _), loaded)| Replayed {
            transition: loaded.transition,
            messages: loaded.messages,
            action_tokens: loaded.action_tokens.iter().map(|t| t.cast_unsigned()).collect(),
            position,
        })
        .collect())
}
