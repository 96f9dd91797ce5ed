//! Trains LLM agents by Natural Language Actor-Critic (arXiv 2512.04601).
//!
//! One binary and Postgres own the loop; generation and gradient steps happen on engines and trainers
//! that others host. The modules are levels: each imports only from those listed after it (the test
//! `layering` holds the table).

pub mod algo;
pub mod api;
pub mod app;
pub mod cli;
pub mod dev;
pub mod doctor;
pub mod domain;
pub mod engine;
pub mod env;
pub mod experience;
pub mod library;
pub mod net;
pub mod prompt;
pub mod queue;
pub mod rollout;
pub mod scheduler;
pub mod store;
pub mod telemetry;
pub mod trainer;
pub mod work;
