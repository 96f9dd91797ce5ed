//! One environment, one policy, one episode; and the cast that speaks in it.

mod branch;
mod cast;
mod play;

pub use branch::{Origin, branch};
pub use cast::{Cast, Line, Published};
pub use play::{Played, PlayedStep, Stage, play};
