//! One environment, one policy, one episode; and the sampler that speaks for the model's parts.

mod branch;
mod play;
mod policy;
mod sampler;

pub use branch::{Origin, branch};
pub use play::{Chance, Played, PlayedStep, Rollout, play};
pub use policy::{ChatPolicy, Policy};
pub use sampler::{Prompt, Published, Sampler};
