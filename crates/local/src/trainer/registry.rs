//! What this process has been asked to do: sessions, models, and the numbered requests that must not
//! happen twice.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::train::Shape;

/// A session that is silent for so long has no client any more, as SkyRL sees it. Clients beat every 10 seconds.
const SILENT: Duration = Duration::from_secs(300);

/// A model that was created in this process.
#[derive(Debug, Clone)]
pub struct ModelRecord {
    /// Its session.
    pub session: String,
    pub shape: Shape,
    /// Seconds since 1970.
    pub created: u64,
    pub unloading: bool,
    /// The state that it was asked to load.
    loaded: Option<Submitted>,
    /// Something else was asked of it: a state may no longer be loaded.
    touched: bool,
    submitted: HashMap<u64, Submitted>,
}

impl ModelRecord {
    fn unload(&mut self) {
        self.unloading = true;
        self.loaded = None;
        self.submitted = HashMap::new();
    }
}

/// What a request asks, so that a repeated one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of a request's kind and body.
    pub fn of(kind: &str, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut hasher = Sha256::new_with_prefix(kind);
        hasher.update(serde_json::to_vec(body)?);
        Ok(Self(hasher.finalize().into()))
    }
}

#[derive(Debug, Clone)]
struct Submitted {
    digest: Digest,
    future: u64,
}

impl Submitted {
    /// Its future, for a request that is the same.
    fn again(&self, digest: Digest) -> Result<u64, Conflict> {
        if self.digest == digest { Ok(self.future) } else { Err(Conflict) }
    }
}

/// Something else was asked where only the same request may be repeated.
pub struct Conflict;

/// Everything, behind one lock.
#[derive(Default)]
pub struct Registry(Mutex<Records>);

#[derive(Default)]
struct Records {
    /// When each was created, or beat last.
    sessions: HashMap<String, Instant>,
    models: BTreeMap<String, ModelRecord>,
}

impl Registry {
    pub fn add_session(&self, id: &str) {
        self.lock().sessions.insert(id.to_owned(), Instant::now());
    }

    pub fn has_session(&self, id: &str) -> bool {
        self.lock().sessions.contains_key(id)
    }

    /// Notes that a session's client lives; false where there is no such session.
    pub fn beat(&self, id: &str) -> bool {
        let mut records = self.lock();
        let known = records.sessions.get_mut(id);
        known.map(|beaten| *beaten = Instant::now()).is_some()
    }

    /// Forgets sessions without a client. Returns their models, which are to be unloaded.
    pub fn forget_silent(&self, now: Instant) -> Vec<String> {
        let mut records = self.lock();
        let Records { sessions, models } = &mut *records;
        sessions.retain(|_, beaten| now.saturating_duration_since(*beaten) < SILENT);
        let left =
            models.iter_mut().filter(|(_, m)| !m.unloading && !sessions.contains_key(&m.session));
        let unload = left.map(|(id, model)| {
            model.unload();
            id.clone()
        });
        unload.collect()
    }

    pub fn add_model(&self, id: &str, session: String, shape: Shape, created: u64) {
        let (unloading, loaded, touched, submitted) = (false, None, false, HashMap::new());
        let record = ModelRecord { session, shape, created, unloading, loaded, touched, submitted };
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
            record.unload();
        }
    }

    /// Notes that something is asked of a model.
    pub fn touch(&self, id: &str) {
        if let Some(record) = self.lock().models.get_mut(id) {
            record.touched = true;
        }
    }

    /// Numbers a request; returns its future. The same number with the same body is the same request. `submit` opens the
    /// future and queues the request while the lock is held, so that two of the same number cannot both be new.
    ///
    /// # Errors
    /// The number was used for something else.
    pub fn number(
        &self,
        id: &str,
        seq_id: Option<u64>,
        digest: Digest,
        submit: impl FnOnce() -> u64,
    ) -> Result<u64, Conflict> {
        let mut records = self.lock();
        let Some(record) = records.models.get_mut(id) else { return Ok(submit()) };
        record.touched = true;
        let Some(seq_id) = seq_id else { return Ok(submit()) };
        match record.submitted.get(&seq_id) {
            Some(seen) => seen.again(digest),
            None => {
                let future = submit();
                record.submitted.insert(seq_id, Submitted { digest, future });
                Ok(future)
            }
        }
    }

    /// Has a model load a state, as its first request; returns the future. A proxy may repeat the request, so the same
    /// one is the same request as long as nothing else is asked of the model.
    ///
    /// # Errors
    /// Something else was asked of the model before.
    pub fn load(
        &self,
        id: &str,
        digest: Digest,
        submit: impl FnOnce() -> u64,
    ) -> Result<u64, Conflict> {
        let mut records = self.lock();
        let Some(record) = records.models.get_mut(id) else { return Ok(submit()) };
        match &record.loaded {
            _ if record.touched => Err(Conflict),
            Some(loaded) => loaded.again(digest),
            None => {
                let future = submit();
                record.loaded = Some(Submitted { digest, future });
                Ok(future)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Registry, SILENT};
    use crate::train::{Role, Shape};

    #[test]
    fn the_models_of_a_silent_session_are_unloaded_once() {
        let registry = Registry::default();
        let shape = Shape { rank: 8, role: Role::Policy, head: None };
        for session in ["dead", "alive"] {
            registry.add_session(session);
            registry.add_model(&format!("{session}-model"), session.into(), shape, 0);
        }
        let begun = Instant::now();
        assert!(registry.forget_silent(begun).is_empty());
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(registry.beat("alive") && !registry.beat("unknown"));
        assert_eq!(registry.forget_silent(begun + SILENT), ["dead-model"]);
        assert!(registry.forget_silent(begun + SILENT).is_empty());
        assert!(registry.has_session("alive") && !registry.has_session("dead"));
    }
}
