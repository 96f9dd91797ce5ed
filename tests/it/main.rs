//! Integration tests: real Postgres, real HTTP, the real embedded model.
#![expect(clippy::unwrap_used, reason = "tests")]

mod ablations;
mod api;
mod assessment;
mod base_model;
mod chat;
mod cli;
mod consult;
mod contract;
mod crash;
mod datasets;
mod docs;
mod doctor;
mod estimate;
mod experiment;
mod faults;
mod fields;
mod fleet;
mod guards;
mod handover;
mod invariants;
mod keys;
mod layering;
mod peers;
mod pipeline;
mod postgres;
mod promotion;
mod queue;
mod replicas;
mod retention;
mod search;
mod sglang;
mod support;
mod theory;
mod traces;
mod webhooks;
