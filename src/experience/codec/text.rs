//! The whole reply is the action.

use crate::experience::{
    action::{Codec, Read, Reply, plain},
    context::Context,
};

/// Any text that is not empty. Replies that differ in the space around them are the same action.
#[derive(Debug, Clone, Copy)]
pub struct PlainText;

impl Codec for PlainText {
    fn read(&self, reply: Reply<'_>, _context: &Context) -> Read {
        let key = |text: &str| Some(text.trim().to_owned()).filter(|key| !key.is_empty());
        plain(reply, key, "a text: it is empty")
    }
}
