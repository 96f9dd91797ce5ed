//! A replica that answers at once.

use super::engine::Speed;

/// It answers at once.
pub struct Immediate;

impl Speed for Immediate {
    async fn wait(&self, _: usize, _: usize) {}
}
