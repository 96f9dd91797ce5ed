//! Twenty Questions without a model: the objects, what counts as a guess, and the split of objects.
//!
//! The answers to other questions come from an oracle, which is no part of this crate.

mod guess;
mod list;
mod object;
mod words;

pub use guess::guess;
pub use list::{LineError, ListError, Objects};
pub use object::{Object, Split};
