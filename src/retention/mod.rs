//! Retention: deletes rows and files that are older than the settings keep them. Every loop here may run at any
//! time, in any number of processes.

mod rows;
mod versions;

pub use rows::prune_rows;
pub use versions::Expiry;
