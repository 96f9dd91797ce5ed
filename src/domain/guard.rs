//! Guards: what watches a run, and what it does when something goes wrong (algorithms sheet §1.8).

use super::text_enum::text_enum;

text_enum!(
    /// What is watched. Each reading is 0 when all is well and grows with the trouble.
    Guard {
        /// Predictions repeat themselves: how much of their distinct word pairs, or of their length, is
        /// lost since the first iteration that made any.
        Collapse = "collapse",
        /// Share of targets dropped because their reasoning cites hindsight.
        Leakage = "leakage",
        /// Share of Yes on steps of failed episodes, less what successful ones have more.
        Sycophancy = "sycophancy",
        /// Held-out actions that cannot be read, or words of the base model's answers to general prompts
        /// that are lost; the larger share.
        Forgetting = "forgetting",
        /// Held-out success lost since the best evaluation.
        Regression = "regression",
        /// Share of refined actions that the environment cannot read.
        InvalidRefinements = "invalid_refinements",
        /// Share of targets not in form or misquoting what came next, or of predictions that name no
        /// end; the larger one.
        LazyCritic = "lazy_critic",
    }
);

text_enum!(
    /// What a guard does when it trips.
    GuardAction {
        /// Nothing, not even an event; the reading is still a metric.
        Ignore = "ignore",
        /// Tell.
        Warn = "warn",
        /// Tell, and pause the job until somebody resumes it.
        Pause = "pause",
        /// Tell, and end the job with what it has.
        Stop = "stop",
        /// Tell, and go on from the best checkpoint.
        RollBack = "roll_back",
    }
);

impl Guard {
    /// The reading above which it trips, unless the spec says otherwise.
    #[must_use]
    pub const fn default_threshold(self) -> f64 {
        match self {
            Self::Collapse
            | Self::Sycophancy
            | Self::Forgetting
            | Self::InvalidRefinements
            | Self::LazyCritic => 0.5,
            Self::Leakage | Self::Regression => 0.2,
        }
    }

    /// The metric of its reading.
    #[must_use]
    pub fn metric(self) -> String {
        format!("guard.{self}")
    }
}
