//! Excerpts of texts for error messages.

/// Maximum number of characters of an excerpt.
const LONGEST: usize = 1000;

/// The beginning of a text. Errors quote what a client sent, and a client may send texts of any length.
#[must_use]
pub fn excerpt(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}
