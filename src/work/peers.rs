//! Clients of the registered engines and trainers, and tokenizers, made once each.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex},
};

use crate::{
    domain::{fault::Fault, spec::ModelSpec},
    engine::{Engine, Limits, Pool},
    prompt::Encoder,
    store::{
        Store,
        peers::{self, EngineRecord},
    },
    trainer::{Reduction, Tinker, Trainer},
};

/// Clients by what they were made from, so that a new registration gets a new client.
#[derive(Default)]
pub struct Peers {
    engines: Mutex<HashMap<EngineRecord, Arc<Pool>>>,
    encoders: Mutex<HashMap<String, Encoder>>,
}

impl Peers {
    /// The engine that a job's model is served by, and the model's tokenizer.
    pub(super) async fn engine(
        &self,
        store: &Store,
        model: &ModelSpec,
    ) -> Result<(Arc<dyn Engine>, Encoder), Fault> {
        let mut conn = store.acquire().await?;
        let record = peers::engines(&mut conn)
            .await?
            .into_iter()
            .find(|e| e.name == model.engine)
            .ok_or_else(|| Fault::Fail(format!("engine {} is not registered", model.engine)))?;
        drop(conn);
        let known = lock(&self.engines).get(&record).cloned();
        let engine = match known {
            Some(engine) => engine,
            None => {
                let EngineRecord { name, urls, base_model, seeds, .. } = &record;
                let made = Pool::new(name, urls, base_model, *seeds, Limits::default());
                let made = Arc::new(made.map_err(|e| e.fault())?);
                lock(&self.engines).entry(record.clone()).or_insert(made).clone()
            }
        };
        let known = lock(&self.encoders).get(&record.model_dir).cloned();
        let encoder = match known {
            Some(encoder) => encoder,
            None => {
                let made = Encoder::load(Path::new(&record.model_dir)).map_err(Fault::fail)?;
                lock(&self.encoders).entry(record.model_dir).or_insert(made).clone()
            }
        };
        Ok((engine, encoder))
    }

    /// The trainer of a job's model.
    pub(super) async fn trainer(
        &self,
        store: &Store,
        model: &ModelSpec,
    ) -> Result<Arc<dyn Trainer>, Fault> {
        let mut conn = store.acquire().await?;
        let record = peers::trainers(&mut conn)
            .await?
            .into_iter()
            .find(|t| t.name == model.trainer)
            .ok_or_else(|| Fault::Fail(format!("trainer {} is not registered", model.trainer)))?;
        let reduction = Reduction::of_kind(&record.kind);
        let made = Tinker::new(&record.name, &record.url, &record.base_model, reduction);
        Ok(Arc::new(made.map_err(|e| e.fault())?))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
