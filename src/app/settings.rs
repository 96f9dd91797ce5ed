//! What a process is told at its start.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

/// Settings of the service.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Where the API and the page listen.
    pub listen: SocketAddr,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// A database of the user's; none runs a private one.
    pub database_url: Option<String>,
    /// Whether the local engine and trainer run in this process.
    pub local_peers: bool,
    /// The model directory that they serve, under its own name; none serves the base that ships.
    pub base_model: Option<PathBuf>,
    /// What webhooks' secrets are made of, at least 32 bytes; none keeps a key in the data directory.
    pub webhook_key: Option<String>,
    /// Compute threads of each; they change nothing but the time.
    pub threads: usize,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8470)),
            data_dir: default_data_dir(),
            database_url: None,
            local_peers: true,
            base_model: None,
            webhook_key: None,
            threads: default_threads(),
        }
    }
}

/// `/var/lib/nlac` for root, whose home Postgres' user cannot enter; otherwise `.nlac` at home.
#[must_use]
pub fn default_data_dir() -> PathBuf {
    if nix::unistd::Uid::effective().is_root() {
        return PathBuf::from("/var/lib/nlac");
    }
    std::env::var_os("HOME")
        .map_or_else(|| PathBuf::from(".nlac"), |h| PathBuf::from(h).join(".nlac"))
}

/// Engine and trainer take turns, so each may use the cores; beyond four a tiny model gains nothing.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(4))
}
