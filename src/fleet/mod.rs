//! The fleet: clients of the registered engines and trainers, and what is known about them.

mod peers;
mod watch;

pub use peers::Peers;
pub use watch::watch;
