//! A transition as a card: what was said before, what was done, what came, and what the critic made of it.

use askama::Template;

use super::diff;
use crate::{
    domain::{annotation::Verdict, ids::JobId},
    experience::message::Message,
    store::read::transitions::TransitionRow,
};

/// Messages before the action that a card shows; the episode has all of them.
const SHOWN: usize = 4;

/// One card.
#[derive(Template)]
#[template(path = "transition_card.html")]
pub(super) struct Card {
    id: String,
    iteration: Option<i32>,
    step: i32,
    solved: Option<bool>,
    episode: String,
    /// The job whose annotation the card shows.
    job: Option<JobId>,
    /// How many messages were said before those that are shown.
    earlier: usize,
    state: Vec<(String, String)>,
    action: String,
    observation: String,
    verdict: Option<Verdict>,
    critique: String,
    /// The refinement as HTML, with what it changed marked.
    refined: String,
}

impl Card {
    /// A card of what is stored.
    pub fn of(row: TransitionRow) -> Self {
        let refined = row.refinement.as_ref().map(|refined| diff::words(&row.action, refined));
        let mut state = spoken(row.state);
        let earlier = state.len().saturating_sub(SHOWN);
        Self {
            id: row.id.to_string(),
            iteration: row.iteration,
            step: row.step,
            solved: row.success,
            episode: row.episode_id.to_string(),
            job: row.job_id,
            earlier,
            state: state.split_off(earlier),
            action: row.action,
            observation: row.observation,
            verdict: row.verdict,
            critique: row.critique.unwrap_or_default(),
            refined: refined.unwrap_or_default(),
        }
    }
}

/// Who speaks, and what was said.
pub(super) fn spoken(messages: Vec<Message>) -> Vec<(String, String)> {
    let spoken = |m: Message| (m.role.as_str().to_owned(), m.written().into_owned());
    messages.into_iter().map(spoken).collect()
}
