//! The `nlac` program: parses its arguments, plays a role, exits with a code.

use std::process::ExitCode;

fn main() -> ExitCode {
    nlac::cli::main()
}
