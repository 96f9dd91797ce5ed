//! One environment, one policy, one episode.
