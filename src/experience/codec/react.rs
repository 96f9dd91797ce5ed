//! ReAct (Yao et al. 2023): the model thinks aloud and ends with its action.

use crate::experience::{
    action::{Codec, Read, Reply, plain},
    context::Context,
};

/// What introduces the action.
const ACTION: &str = "Action:";

/// What follows the last `Action:` of the reply. Thoughts before it do not tell two actions apart.
#[derive(Debug, Clone, Copy)]
pub struct React;

impl Codec for React {
    fn read(&self, reply: Reply<'_>, _context: &Context) -> Read {
        let key = |text: &str| {
            let (_, action) = text.rsplit_once(ACTION)?;
            Some(action.trim().to_owned()).filter(|key| !key.is_empty())
        };
        plain(reply, key, "an action: it has no text after `Action:`")
    }
}

#[cfg(test)]
mod tests {
    use super::React;
    use crate::experience::{
        action::{Codec, Reply},
        context::Context,
    };

    #[test]
    fn the_last_action_counts_and_thoughts_do_not() {
        let context = Context::of(Vec::new());
        let key = |text| React.read(Reply::whole(text), &context).ok().map(|action| action.key);
        let thought = "Thought: maybe Action: wait\nAction: open the door ";
        assert_eq!(key(thought).as_deref(), Some("open the door"));
        assert_eq!(key("Action: open the door"), key(thought));
        assert_eq!((key("open the door"), key("Thought: hm.\nAction:  ")), (None, None));
        assert!(React.read(Reply { text: thought, cut: true }, &context).is_err());
    }
}
