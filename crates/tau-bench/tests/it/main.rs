//! Compares the crate with the benchmark's Python code by its vectors, and tests what those leave out.

mod data;
mod gold;
mod hostile;
mod memory;
mod random;
mod reward;
mod support;
mod values;
mod vectors;
