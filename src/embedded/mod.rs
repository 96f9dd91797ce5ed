//! The embedded default: a private Postgres, the local engine and trainer as ordinary wire servers, and the
//! base model that ships.

pub mod base_model;
pub mod local;
pub mod postgres;
