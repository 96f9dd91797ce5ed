//! The embedded default: a private Postgres, and the local engine and trainer as ordinary wire servers.
