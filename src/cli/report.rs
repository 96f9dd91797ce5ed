//! Output of the commands. Only this module writes to the terminal.

use std::io::Write;

use serde_json::Value;

use super::Failure;

/// A line on standard output. A closed pipe is not an error.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Unchanged text on standard output.
pub fn raw(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// JSON on standard output.
pub fn json(value: &Value) -> Result<(), Failure> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// A sentence on standard error.
pub fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "nlac: {text}");
}
