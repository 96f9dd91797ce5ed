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

/// An answer of the service on standard output: as JSON, or as text.
pub fn answer(value: &Value, as_json: bool, text: impl FnOnce(&Value)) -> Result<(), Failure> {
    if as_json {
        return json(value);
    }
    text(value);
    Ok(())
}

/// A page of a list on standard output: as JSON, or as a table with the way to the next page.
pub fn page(page: &Value, as_json: bool, table: impl FnOnce(&[Value])) -> Result<(), Failure> {
    if as_json {
        return json(page);
    }
    table(page["data"].as_array().map_or(&[], Vec::as_slice));
    if let Some(next) = page["next"].as_str() {
        error(&format!("more rows follow; show them with --after {next}"));
    }
    Ok(())
}

/// What a command without an answer did.
pub fn done(what: &str, name: &str, as_json: bool, sentence: &str) -> Result<(), Failure> {
    if as_json {
        return json(&serde_json::json!({ what: name }));
    }
    line(sentence);
    Ok(())
}

/// A sentence on standard error.
pub fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "nlac: {text}");
}
