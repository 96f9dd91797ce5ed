//! OpenAI's responses.

mod items;
mod read;
mod settings;
mod stream;
mod write;

pub(super) use read::read;
pub(super) use stream::{error_events, events};
pub(super) use write::answer;
