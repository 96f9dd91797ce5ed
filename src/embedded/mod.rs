//! The embedded default: a private Postgres, the local engine and trainer as ordinary wire servers, and the
//! base model that ships.

pub mod base_model;
pub mod local;
pub mod postgres;

use std::path::PathBuf;

/// `/var/lib/nlac` for root, whose home Postgres' user cannot enter; otherwise `.nlac` at home.
#[must_use]
pub fn default_data_dir() -> PathBuf {
    if nix::unistd::Uid::effective().is_root() {
        return PathBuf::from("/var/lib/nlac");
    }
    std::env::var_os("HOME")
        .map_or_else(|| PathBuf::from(".nlac"), |h| PathBuf::from(h).join(".nlac"))
}
