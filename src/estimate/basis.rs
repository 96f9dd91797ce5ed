//! What figures are based on, in words.

use super::{Observed, Pace};
use crate::domain::spec::JobSpec;

/// What the figures of a spec are based on.
pub(super) struct Basis<'a> {
    pub spec: &'a JobSpec,
    pub observed: &'a Observed,
    pub pace: &'a Pace,
}

impl Basis<'_> {
    fn jobs(count: usize) -> String {
        if count == 1 { "1 earlier job".into() } else { format!("{count} earlier jobs") }
    }

    /// The basis of counts.
    pub fn counts(&self) -> String {
        match self.observed.iterations {
            0 => "the spec's bounds: no job with this environment, model and algorithm has learnt here yet"
                .into(),
            n => format!(
                "the spec and {} with this environment, model and algorithm: mean of {n} iterations, their \
                 extremes and a quarter beyond",
                Self::jobs(self.observed.jobs)
            ),
        }
    }

    /// The basis of token counts of prompts and examples.
    pub fn lengths(&self) -> String {
        match self.observed.iterations {
            0 => "nothing: how long prompts are is measured by the first job with this environment, model and \
                  algorithm"
                .into(),
            _ => self.counts(),
        }
    }

    /// The basis of the wall time.
    pub fn time(&self) -> String {
        let model = &self.spec.model;
        let here = format!("engine {} and trainer {}", model.engine, model.trainer);
        match (self.pace.jobs, self.observed.iterations) {
            (0, _) => format!(
                "nothing: no job has learnt on {here} yet; `nlac doctor` measures what they can do"
            ),
            (_, 0) => self.lengths(),
            (jobs, _) => {
                format!("the figures above at the speed of {} on {here}", Self::jobs(jobs))
            }
        }
    }
}
