//! Answers: extraction, equivalence, and the data sets.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cases;
mod data;
mod extraction;
mod hostile;
mod other_answers;
mod problems;
mod random;
mod rewriting;
mod spellings;
mod verifier;
mod wrong;
