//! Gradients and optimizer steps.

mod adam;
mod backward;
mod layers;
mod lora_trainer;
mod loss;
mod scored;
mod state;
mod value;

pub use adam::{Adam, AdamParams};
pub use backward::{Example, Gradients, forward_backward, logprobs};
pub use lora_trainer::{LoraTrainer, Role, Shape, StepStats};
pub use loss::{Clip, Loss, Sampled, ValueTargets};
pub use scored::{ScoredExample, ScoredLoss, log_policy};
pub use value::HeadSpec;
