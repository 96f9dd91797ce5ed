//! Tokens to text as they come: never half a character, and nothing that could still turn out to be
//! the beginning of a stop string.

use nlac_chat::{ChatError, ChatTokenizer};

/// How a request wants its text.
#[derive(Debug, Clone)]
pub struct TextOptions {
    pub stop: Vec<String>,
    pub include_stop: bool,
    pub skip_special: bool,
}

/// The text of one sequence.
pub struct TextWriter<'a> {
    tokenizer: &'a ChatTokenizer,
    options: &'a TextOptions,
    /// The tokens whose text the next one may still change, from the prompt's end on.
    window: Vec<u32>,
    /// The text of the window that is written already.
    prefix: String,
    written: String,
    sent: usize,
    hold: usize,
}

impl<'a> TextWriter<'a> {
    /// A text that goes on from a prompt.
    pub fn new(
        tokenizer: &'a ChatTokenizer,
        options: &'a TextOptions,
        prompt: &[u32],
    ) -> Result<Self, ChatError> {
        let prefix = tokenizer.decode(prompt, options.skip_special)?;
        let longest = options.stop.iter().map(String::len).max().unwrap_or(0);
        let hold = if options.include_stop { 0 } else { longest.saturating_sub(1) };
        let window = prompt.to_vec();
        let written = String::new();
        Ok(Self { tokenizer, options, window, prefix, written, sent: 0, hold })
    }

    /// Takes a token; returns the stop string that it completed.
    pub fn push(&mut self, id: u32) -> Result<Option<&'a str>, ChatError> {
        let settled = self.window.len();
        self.window.push(id);
        let text = self.tokenizer.decode(&self.window, self.options.skip_special)?;
        let Some(new) = text.strip_prefix(&self.prefix) else { return Ok(None) };
        if new.is_empty() || new.ends_with('\u{FFFD}') {
            return Ok(None);
        }
        let before = self.written.len();
        self.written.push_str(new);
        self.window.drain(..settled);
        self.prefix = self.tokenizer.decode(&self.window, self.options.skip_special)?;
        for stop in self.options.stop.iter().filter(|stop| !stop.is_empty()) {
            let mut from = before.saturating_sub(stop.len() - 1);
            while !self.written.is_char_boundary(from) {
                from -= 1;
            }
            if let Some(at) = self.written[from..].find(stop.as_str()) {
                let end = from + at + if self.options.include_stop { stop.len() } else { 0 };
                self.written.truncate(end);
                self.hold = 0;
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// The text so far.
    pub fn into_text(self) -> String {
        self.written
    }

    /// What can be sent since the last time; everything when the sequence has ended.
    pub fn take(&mut self, ended: bool) -> String {
        let hold = if ended { 0 } else { self.hold };
        let mut until = self.written.len().saturating_sub(hold).max(self.sent);
        while !self.written.is_char_boundary(until) {
            until -= 1;
        }
        let delta = self.written[self.sent..until].to_owned();
        self.sent = until;
        delta
    }
}
