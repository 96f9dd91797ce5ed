//! Trains LLM agents by Natural Language Actor-Critic (arXiv 2512.04601).
//!
//! One binary and Postgres own the loop; generation and gradient steps happen on engines and trainers
//! that others host. The modules are levels: each imports only from those listed after it (the test
//! `layering` holds the table).

pub mod admission;
pub mod advice;
pub mod algo;
pub mod api;
pub mod app;
pub mod cli;
pub mod doctor;
pub mod domain;
pub mod embedded;
pub mod engine;
pub mod env;
pub mod estimate;
pub mod experience;
pub mod fleet;
pub mod net;
pub mod prompt;
pub mod quantity;
pub mod queue;
pub mod retention;
pub mod rollout;
pub mod scheduler;
pub mod store;
pub mod telemetry;
pub mod trainer;
pub mod webhooks;
pub mod work;
