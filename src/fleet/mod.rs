//! The fleet: clients of the registered engines, trainers and environments, and what is known about them.

mod environments;
mod peers;
mod sharing;
mod watch;

pub use peers::Peers;
pub use sharing::share;
pub use watch::watch;
