//! Output of the commands. Only this module writes to the terminal.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;

use super::Failure;

/// A line for people on standard output. Nobody may read it, for example after `| head`.
pub fn line(text: &str) {
    let _ = stream(text);
}

/// A line on standard output for a command that ends when nobody reads its output.
///
/// # Errors
/// A closed pipe, or a full disk.
pub fn stream(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Unchanged text on standard output.
pub fn raw(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// JSON on standard output.
pub fn json(value: &Value) -> Result<(), Failure> {
    Ok(stream(&serde_json::to_string_pretty(value)?)?)
}

/// Whether a command failed only because nobody reads its output any more.
pub fn is_unread(failure: &Failure) -> bool {
    failure.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
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
    let _ = writeln!(io::stderr().lock(), "nlac: {text}");
}
