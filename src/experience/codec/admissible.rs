//! One of the actions that the environment says are possible.

use crate::experience::{
    action::{Codec, Read, Reply, plain},
    context::Context,
};

/// An admissible action of the context, in any case and with any space around it.
#[derive(Debug, Clone, Copy)]
pub struct Admissible;

impl Codec for Admissible {
    fn read(&self, reply: Reply<'_>, context: &Context) -> Read {
        let key = |text: &str| {
            let same = |action: &&String| action.trim().eq_ignore_ascii_case(text.trim());
            context.admissible().iter().find(same).cloned()
        };
        plain(reply, key, "one of the admissible actions")
    }
}

#[cfg(test)]
mod tests {
    use super::Admissible;
    use crate::experience::{
        action::{Codec, Reply},
        context::Context,
        message::Message,
    };

    #[test]
    fn only_admissible_actions_are_read() {
        let state = Context::of(vec![Message::user("You see a door.")]);
        let state = state.admitting(vec!["Go north".into(), "Open door".into()]);
        let key = |text| Admissible.read(Reply::whole(text), &state).ok().map(|action| action.key);
        assert_eq!(key(" open door\n").as_deref(), Some("Open door"));
        assert_eq!(key("open"), None);
    }
}
