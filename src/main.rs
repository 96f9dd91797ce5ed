//! The `nlac` program: parses its arguments, runs a command, exits with a code.

use std::process::ExitCode;

/// The embedded trainer allocates and frees megabytes per step. The system allocator returns this memory to
/// the kernel each time and spends an eighth of the step on page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nlac::cli::main()
}
