//! One environment, one policy, one episode; and the cast that speaks in it.

mod cast;
mod play;

pub use cast::{Cast, Line, Published};
pub use play::{Played, PlayedStep, Stage, play};
