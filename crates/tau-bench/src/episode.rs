//! One conversation about one task.

use std::sync::Arc;

use crate::{
    database::Database,
    domain::Split,
    library::{Entry, Library, Task},
    reward::tells,
    tools::{self, Call, TRANSFER},
    user::STOP,
};

/// An episode: the agent calls tools or responds to the user until either of them ends it.
///
/// The caller follows each [`Episode::respond`] by [`Episode::heard`], and limits the agent's turns. An
/// episode that the caller cuts off earns nothing.
#[derive(Debug)]
pub struct Episode {
    library: Arc<Library>,
    entry: Arc<Entry>,
    database: Database,
    /// For each output of the task: whether the agent told the user.
    told: Vec<bool>,
    ended: bool,
}

impl Episode {
    /// Starts an episode of a task; `None` if the split has no task of that index.
    pub fn new(library: Arc<Library>, split: Split, index: usize) -> Option<Self> {
        let entry = Arc::clone(library.entry(split, index)?);
        let database = library.database();
        let told = vec![false; entry.task.outputs.len()];
        Some(Self { library, entry, database, told, ended: false })
    }

    /// The task of this episode.
    pub fn task(&self) -> &Task {
        &self.entry.task
    }

    /// The database as the agent's calls left it.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Calls a tool and returns the observation. A transfer to human agents ends the episode, even if
    /// its arguments are wrong.
    pub fn call(&mut self, call: &Call) -> String {
        self.ended |= call.name == TRANSFER;
        tools::call(self.library.domain(), &mut self.database, call)
    }

    /// Takes note of what the agent said to the user.
    pub fn respond(&mut self, content: &str) {
        for (told, output) in self.told.iter_mut().zip(&self.entry.task.outputs) {
            *told = *told || tells(content, output);
        }
    }

    /// Takes note of what the user said. The stop token ends the episode.
    pub fn heard(&mut self, reply: &str) {
        self.ended |= reply.contains(STOP);
    }

    /// Whether the agent or the user ended the episode.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The reward, which the caller asks for when the episode ended: later calls would change it.
    ///
    /// 1 if the episode ended, the database is as the task wants it and the user was told every output;
    /// else 0.
    pub fn reward(&self) -> f64 {
        let earned = self.ended
            && self.told.iter().all(|told| *told)
            && self.library.gold(&self.entry) == &self.database.fingerprint();
        f64::from(u8::from(earned))
    }
}
