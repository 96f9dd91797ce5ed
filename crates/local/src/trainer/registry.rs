//! What this process has been asked to do: sessions, models, and the numbered requests that must not
//! happen twice.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::train::Shape;

/// A model that was created in this process.
#[derive(Debug, Clone)]
pub struct ModelRecord {
    /// Its session.
    pub session: String,
    pub shape: Shape,
    /// Seconds since 1970.
    pub created: u64,
    pub unloading: bool,
    /// Something was asked of it: a state may no longer be loaded.
    touched: bool,
    submitted: HashMap<u64, Submitted>,
}

#[derive(Debug, Clone)]
struct Submitted {
    digest: [u8; 32],
    future: u64,
}

/// Whether a numbered request is new.
pub enum Numbered {
    /// It is, and has this future now.
    New(u64),
    /// It is the same as an earlier one.
    Repeated(u64),
    /// Its number was used for something else.
    Conflict,
}

/// Everything, behind one lock.
#[derive(Default)]
pub struct Registry(Mutex<Records>);

#[derive(Default)]
struct Records {
    sessions: HashSet<String>,
    models: BTreeMap<String, ModelRecord>,
}

impl Registry {
    pub fn add_session(&self, id: &str) {
        self.lock().sessions.insert(id.to_owned());
    }

    pub fn has_session(&self, id: &str) -> bool {
        self.lock().sessions.contains(id)
    }

    pub fn add_model(&self, id: &str, session: String, shape: Shape, created: u64) {
        let (touched, unloading, submitted) = (false, false, HashMap::new());
        let record = ModelRecord { session, shape, created, unloading, touched, submitted };
        self.lock().models.insert(id.to_owned(), record);
    }

    pub fn model(&self, id: &str) -> Option<ModelRecord> {
        self.lock().models.get(id).cloned()
    }

    pub fn models(&self) -> Vec<(String, ModelRecord)> {
        self.lock().models.iter().map(|(id, record)| (id.clone(), record.clone())).collect()
    }

    pub fn unload(&self, id: &str) {
        if let Some(record) = self.lock().models.get_mut(id) {
            record.unloading = true;
            record.submitted = HashMap::new();
        }
    }

    /// Notes that something is asked of a model; false when something was asked before.
    pub fn touch(&self, id: &str) -> bool {
        match self.lock().models.get_mut(id) {
            Some(record) => !std::mem::replace(&mut record.touched, true),
            None => true,
        }
    }

    /// Numbers a request. `submit` opens its future and queues it while the lock is held, so that two
    /// of the same number cannot both be new.
    pub fn number(
        &self,
        id: &str,
        seq_id: Option<u64>,
        kind: &str,
        body: &impl Serialize,
        submit: impl FnOnce() -> u64,
    ) -> Result<Numbered, serde_json::Error> {
        let mut hasher = Sha256::new_with_prefix(kind);
        hasher.update(serde_json::to_vec(body)?);
        let digest = hasher.finalize().into();
        let mut records = self.lock();
        let Some(record) = records.models.get_mut(id) else { return Ok(Numbered::New(submit())) };
        record.touched = true;
        let Some(seq_id) = seq_id else { return Ok(Numbered::New(submit())) };
        match record.submitted.get(&seq_id) {
            Some(seen) if seen.digest == digest => Ok(Numbered::Repeated(seen.future)),
            Some(_) => Ok(Numbered::Conflict),
            None => {
                let future = submit();
                record.submitted.insert(seq_id, Submitted { digest, future });
                Ok(Numbered::New(future))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
