//! The `nlac` program: parses its arguments, plays a role, exits with a code.

use std::process::ExitCode;

/// The embedded trainer takes and gives back megabytes per step; the system's allocator returns them to
/// the kernel each time and spends an eighth of the step on page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nlac::cli::main()
}
